internal import CGLib
internal import CGStreamer
package import MediaGraph

/// An object with a name, a parent and properties. The corresponding C type is `GstObject`.
// @unchecked: the pointer never changes, and GStreamer's locks guard reference counts, names and properties.
package class GStreamerObject: @unchecked Sendable {
    let object: UnsafeMutablePointer<GstObject>

    init(takingOwnership pointer: UnsafeMutableRawPointer) {
        object = pointer.assumingMemoryBound(to: GstObject.self)
    }

    deinit {
        gst_object_unref(object)
    }

    package final var name: String { takeString(gst_object_get_name(object)) ?? "" }

    /// Names of the object and its parents, innermost first.
    package final var path: [String] { objectPath(object) }

    /// The object in messages.
    var title: String { name }

    /// The state on which depends which properties can change. Nil if none does.
    var propertyState: ElementState? { nil }
}

/// Reading and setting properties. The corresponding C functions are `g_object_set_property` and its like.
extension GStreamerObject {
    package final func has(_ property: String) -> Bool {
        specification(of: property) != nil
    }

    /// Sets a property named by the program.
    ///
    /// Throws `element.property` if the installed element lacks the property or the value, or a number is out of range,
    /// as releases of GStreamer differ.
    package final func set(_ property: String, _ value: SettingValue) throws(MediaError) {
        let reason = specification(of: property).map { store(value, in: $0) } ?? unknown(property)
        guard let reason else { return }
        throw MediaError(
            code: MediaError.Code.elementProperty,
            message: "The GStreamer element \(title) does not fit this program: "
                + "\(reason.hasSuffix("?") ? reason : reason + ".") GStreamer \(GStreamer.version) is installed. "
                + "Install the release that this program was built for, 1.22 or later.")
    }

    /// Sets a property named by a user. Returns nil on success, else the reason, and then changes nothing.
    ///
    /// Structures, such as the `extra-controls` of `v4l2src`, are set from their text: `controls,brightness=120`.
    package final func trySet(_ property: String, _ value: SettingValue) -> String? {
        use(value, for: property, isSet: true)
    }

    /// The reason that `trySet` would return, without setting the property. Nil if it would set it.
    package final func obstacle(toSetting property: String, _ value: SettingValue) -> String? {
        use(value, for: property, isSet: false)
    }

    private func use(_ value: SettingValue, for property: String, isSet: Bool) -> String? {
        guard let specification = specification(of: property) else { return unknown(property) }
        let flags = PropertyFlags.of(specification)
        guard flags & PropertyFlags.writable != 0 else { return "\(title).\(property) is read-only" }
        guard flags & PropertyFlags.constructOnly == 0 else {
            return "\(title).\(property) can be set only when the element is created"
        }
        if let highest = PropertyFlags.highestState(flags), let state = propertyState, state.rawValue > highest.rawValue
        {
            return "\(title).\(property) cannot be changed while the element is \(state)"
        }
        return store(value, in: specification, isSet: isSet)
    }

    /// Reads a property. Nil if it does not exist, is unset, or has no text form.
    package final func value(_ property: String) -> SettingValue? {
        read(property) { SettingValue($0) }
    }

    /// Reads a property that is a number or a flag. 0 if it is neither.
    package final func integer(_ property: String) -> Int {
        read(property, as: FundamentalType.int64) { Int(g_value_get_int64($0)) } ?? 0
    }

    /// Reads a number from a property that is a structure, such as the statistics of a jitter buffer. 0 if it has none.
    package final func integer(_ field: String, ofStructure property: String) -> Int {
        read(property) { value in
            guard value.pointee.g_type == gst_structure_get_type(), let structure = gst_value_get_structure(value)
            else { return nil }
            return gst_structure_get_value(structure, field).flatMap(SettingValue.init)?.integer
        } ?? 0
    }

    /// Calls `body` with the value of a property, converted to `type` if one is given.
    private func read<Result>(
        _ property: String, as type: GType? = nil, _ body: (UnsafePointer<GValue>) -> Result?
    ) -> Result? {
        guard let specification = specification(of: property),
            PropertyFlags.of(specification) & PropertyFlags.readable != 0
        else { return nil }
        var holder = GValue()
        g_value_init(&holder, type ?? specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return body(&holder)
    }

    /// Nil on success, otherwise the error message.
    private func store(
        _ value: SettingValue, in specification: UnsafeMutablePointer<GParamSpec>, isSet: Bool = true
    ) -> String? {
        let property = String(cString: specification.pointee.name)
        let domain = PropertyDomain(specification)
        let refusal = {
            "\(self.title).\(property) cannot be \(value.notation)"
                + (domain.map { "; it must be \($0.form ?? $0.values.words)" } ?? "")
        }
        // GStreamer would convert a negative number to a very large one.
        if case .integer(let number) = value, case .integer(let range)? = domain?.values, !range.contains(number) {
            return refusal()
        }
        var holder = GValue()
        g_value_init(&holder, specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        if g_type_fundamental(specification.pointee.value_type) == FundamentalType.string {
            g_value_set_string(&holder, value.notation)
        } else if gst_value_deserialize_with_pspec(&holder, value.notation, specification) == 0 {
            return refusal()
        }
        // Validation clamps values outside of the range, and reports that.
        if g_param_value_validate(specification, &holder) != 0 { return refusal() }
        if isSet { g_object_set_property(asGObject, property, &holder) }
        return nil
    }

    private func unknown(_ property: String) -> String {
        let hint = property.nearest(among: propertyNames).map { "; did you mean \($0)?" } ?? ""
        return "\(title) has no property \(property)\(hint)"
    }

    /// The names of all properties, in alphabetical order.
    package final var propertyNames: [String] { GStreamerKit.propertyNames(of: classPointer) }

    final func specification(of property: String) -> UnsafeMutablePointer<GParamSpec>? {
        g_object_class_find_property(classPointer, property)
    }

    final var classPointer: UnsafeMutablePointer<GObjectClass> {
        // Like the C macro G_OBJECT_GET_CLASS: an instance begins with the pointer to its class.
        UnsafeMutableRawPointer(object).load(as: UnsafeMutablePointer<GObjectClass>.self)
    }

    final var asGObject: UnsafeMutablePointer<GObject> {
        UnsafeMutableRawPointer(object).assumingMemoryBound(to: GObject.self)
    }
}

/// Names of an object and its parents, innermost first.
func objectPath(_ object: UnsafeMutablePointer<GstObject>) -> [String] {
    var path: [String] = []
    var next = gst_object_ref(object)?.assumingMemoryBound(to: GstObject.self)
    while let current = next {
        path.append(takeString(gst_object_get_name(current)) ?? "")
        next = gst_object_get_parent(current)
        gst_object_unref(current)
    }
    return path
}

func propertyNames(of type: UnsafeMutablePointer<GObjectClass>) -> [String] {
    var count: UInt32 = 0
    guard let list = g_object_class_list_properties(type, &count) else { return [] }
    defer { g_free(list) }
    return (0..<Int(count)).compactMap { list[$0]?.pointee.name.map { String(cString: $0) } }.sorted()
}
