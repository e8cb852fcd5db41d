internal import CGLib
internal import CGStreamer
package import MediaGraph

/// Reading and setting properties. The corresponding C functions are `g_object_set_property` and its like.
extension Element {
    package func has(_ property: String) -> Bool {
        specification(of: property) != nil
    }

    /// Sets a property named by the program.
    ///
    /// Throws `element.property` if the installed element lacks the property or the value, or a number is out of range,
    /// as releases of GStreamer differ.
    package func set(_ property: String, _ value: SettingValue) throws(MediaError) {
        try holder.set(property, value)
    }

    /// Sets a property named by a user. Returns nil on success, else the reason, and then changes nothing.
    ///
    /// Structures, such as the `extra-controls` of `v4l2src`, are set from their text: `controls,brightness=120`.
    package func trySet(_ property: String, _ value: SettingValue) -> String? {
        holder.trySet(property, value, in: state)
    }

    private var holder: PropertyHolder { PropertyHolder(asGObject, name: factory) }

    /// Reads a property. Nil if it does not exist, is unset, or has no text form.
    package func value(_ property: String) -> SettingValue? {
        guard let specification = specification(of: property),
            PropertyFlags.of(specification) & PropertyFlags.readable != 0
        else { return nil }
        var holder = GValue()
        g_value_init(&holder, specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return SettingValue(&holder)
    }

    /// Reads a property that is a number or a flag. 0 if it is neither.
    package func integer(_ property: String) -> Int {
        guard has(property) else { return 0 }
        var holder = GValue()
        g_value_init(&holder, FundamentalType.int64)
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return Int(g_value_get_int64(&holder))
    }

    /// Reads a number from a property that is a structure, such as the statistics of a jitter buffer. 0 if it has none.
    package func integer(_ field: String, ofStructure property: String) -> Int {
        guard let specification = specification(of: property),
            specification.pointee.value_type == gst_structure_get_type()
        else { return 0 }
        var holder = GValue()
        g_value_init(&holder, gst_structure_get_type())
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        guard let structure = gst_value_get_structure(&holder), let value = gst_structure_get_value(structure, field)
        else { return 0 }
        return SettingValue(value)?.integer ?? 0
    }

    /// The names of all properties, in alphabetical order.
    package var propertyNames: [String] { GStreamerKit.propertyNames(of: classPointer) }

    func specification(of property: String) -> UnsafeMutablePointer<GParamSpec>? {
        g_object_class_find_property(classPointer, property)
    }

    var classPointer: UnsafeMutablePointer<GObjectClass> {
        // Like the C macro G_OBJECT_GET_CLASS: an instance begins with the pointer to its class.
        UnsafeMutableRawPointer(pointer).load(as: UnsafeMutablePointer<GObjectClass>.self)
    }
}

/// An object with properties, and its name in messages.
struct PropertyHolder {
    private let object: UnsafeMutablePointer<GObject>
    private let name: String

    init(_ object: UnsafeMutablePointer<GObject>, name: String) {
        self.object = object
        self.name = name
    }

    private var classPointer: UnsafeMutablePointer<GObjectClass> {
        UnsafeMutableRawPointer(object).load(as: UnsafeMutablePointer<GObjectClass>.self)
    }

    /// Throws `element.property` if the object lacks the property or the value.
    func set(_ property: String, _ value: SettingValue) throws(MediaError) {
        let specification = g_object_class_find_property(classPointer, property)
        let reason = specification.map { store(value, in: $0) } ?? unknown(property)
        if let reason { throw refusal(reason) }
    }

    private func unknown(_ property: String) -> String {
        let hint = property.nearest(among: propertyNames(of: classPointer)).map { "; did you mean \($0)?" } ?? ""
        return "\(name) has no property \(property)\(hint)"
    }

    private func refusal(_ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.elementProperty,
            message: "The GStreamer element \(name) does not fit this program: "
                + "\(reason.hasSuffix("?") ? reason : reason + ".") GStreamer \(GStreamer.version) is installed. "
                + "Install the release that this program was built for, 1.22 or later.")
    }

    /// `state` is that of the element, if the object is one.
    func trySet(_ property: String, _ value: SettingValue, in state: ElementState?) -> String? {
        guard let specification = g_object_class_find_property(classPointer, property) else {
            return unknown(property)
        }
        let flags = PropertyFlags.of(specification)
        guard flags & PropertyFlags.writable != 0 else { return "\(name).\(property) is read-only" }
        guard flags & PropertyFlags.constructOnly == 0 else {
            return "\(name).\(property) can be set only when the element is created"
        }
        if let state, let highest = PropertyFlags.highestState(flags), state.rawValue > highest.rawValue {
            return "\(name).\(property) cannot be changed while the element is \(state)"
        }
        return store(value, in: specification)
    }

    /// Nil on success, otherwise the error message.
    private func store(_ value: SettingValue, in specification: UnsafeMutablePointer<GParamSpec>) -> String? {
        let property = String(cString: specification.pointee.name)
        // GStreamer would convert a negative number to a very large one.
        if case .integer(let number) = value, let domain = PropertyDomain(specification),
            case .integer(let range) = domain.values, !range.contains(number)
        {
            return "\(name).\(property) cannot be \(number); it must be \(domain)"
        }
        let domain = { PropertyDomain(specification).map { "; it must be \($0)" } ?? "" }
        var holder = GValue()
        g_value_init(&holder, specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        if g_type_fundamental(specification.pointee.value_type) == FundamentalType.string {
            g_value_set_string(&holder, value.notation)
        } else if gst_value_deserialize_with_pspec(&holder, value.notation, specification) == 0 {
            return "\(name).\(property) cannot be \(value.notation)\(domain())"
        }
        // Validation clamps values outside of the range, and reports that.
        if g_param_value_validate(specification, &holder) != 0 {
            return "\(name).\(property) cannot be \(value.notation)\(domain())"
        }
        g_object_set_property(object, property, &holder)
        return nil
    }
}

func propertyNames(of type: UnsafeMutablePointer<GObjectClass>) -> [String] {
    var count: UInt32 = 0
    guard let list = g_object_class_list_properties(type, &count) else { return [] }
    defer { g_free(list) }
    return (0..<Int(count)).compactMap { list[$0]?.pointee.name.map { String(cString: $0) } }.sorted()
}
