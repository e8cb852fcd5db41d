internal import CGLib
internal import CGStreamer
package import MediaGraph

/// A template of an element's pads. The corresponding C type is `GstPadTemplate`.
package struct PadTemplate: Sendable {
    package enum Direction: Sendable {
        case source
        case sink
    }

    package enum Presence: Sendable {
        case always
        /// Appears when the element knows its output.
        case sometimes
        /// Exists on request.
        case onRequest
    }

    /// Such as `sink` or `sink_%u`.
    package let name: String
    package let direction: Direction
    package let presence: Presence
    package let caps: Caps
    /// Properties of such a pad, such as the place of a frame in a mixer.
    package let properties: [SettingContract]

    init(_ template: UnsafeMutablePointer<GstPadTemplate>, _ caps: Caps) {
        let direction = template.pointee.direction
        let presence = template.pointee.presence
        name = String(cString: template.pointee.name_template)
        properties = Self.properties(of: template.pointee.ABI.abi.gtype)
        self.direction = direction == GST_PAD_SRC ? .source : .sink
        switch presence {
        case GST_PAD_SOMETIMES: self.presence = .sometimes
        case GST_PAD_REQUEST: self.presence = .onRequest
        default: self.presence = .always
        }
        self.caps = caps
    }

    /// Properties that the pad's type has beyond those of every pad.
    private static func properties(of type: GType) -> [SettingContract] {
        let common: Set = ["caps", "direction", "emit-signals", "name", "offset", "parent", "template"]
        guard g_type_is_a(type, gst_pad_get_type()) != 0, let opaque = g_type_class_ref(type) else { return [] }
        defer { g_type_class_unref(opaque) }
        let pads = opaque.assumingMemoryBound(to: GObjectClass.self)
        return propertyNames(of: pads).filter { !common.contains($0) }.compactMap { name in
            g_object_class_find_property(pads, name).flatMap { specification in
                SettingContract(
                    specification,
                    defaultValue: g_param_spec_get_default_value(specification).flatMap(SettingValue.init))
            }
        }
    }
}
