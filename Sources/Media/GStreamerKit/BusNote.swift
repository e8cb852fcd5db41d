internal import CGLib
internal import CGStreamer

/// A bus message that needs no response.
package enum BusNote: Sendable {
    case warning(BusRemark)
    case information(BusRemark)
    /// An element's own message, such as the measurements of a `level`.
    case element(ElementMessage)
    case qualityOfService(QualityOfService)
    case stateChanged(path: [String], from: ElementState, to: ElementState)
    /// A sink has reached the end of its stream. Names of the sink and its parent bins, innermost first.
    case sinkEnded(path: [String])
}

/// A warning or an information of an element.
package struct BusRemark: Sendable {
    /// Names of the element and its parent bins, innermost first.
    package let path: [String]
    package let message: String
    package let detail: String
}

/// A structure posted by an element.
package struct ElementMessage: Sendable {
    /// Names of the element and its parent bins, innermost first.
    package let path: [String]
    /// The element's factory, such as `level`.
    package let factory: String
    /// The structure's name, often that of the element.
    package let name: String
    package let fields: [String: PropertyValue]
}

/// A late element. Counts are since its start, in buffers or samples.
package struct QualityOfService: Sendable {
    package let path: [String]
    package let isLive: Bool
    /// Nanoseconds since the pipeline's start. Nil if the element does not know.
    package let runningTime: UInt64?
    /// How late it was, in nanoseconds. Negative if early.
    package let lateness: Int64
    package let processed: UInt64
    package let dropped: UInt64
}

extension BusNote {
    init?(_ message: UnsafeMutablePointer<GstMessage>) {
        let path = { message.pointee.src.map(objectPath) ?? [] }
        switch message.pointee.type {
        case GST_MESSAGE_WARNING:
            self = .warning(BusRemark(message, gst_message_parse_warning))
        case GST_MESSAGE_INFO:
            self = .information(BusRemark(message, gst_message_parse_info))
        case GST_MESSAGE_QOS:
            self = .qualityOfService(QualityOfService(message, path: path()))
        case GST_MESSAGE_STATE_CHANGED:
            var old = GST_STATE_NULL
            var new = GST_STATE_NULL
            gst_message_parse_state_changed(message, &old, &new, nil)
            guard let old = ElementState(old), let new = ElementState(new) else { return nil }
            self = .stateChanged(path: path(), from: old, to: new)
        case GST_MESSAGE_ELEMENT:
            guard let structure = gst_message_get_structure(message) else { return nil }
            if gst_structure_has_name(structure, "GstBinForwarded") != 0 {
                guard let ended = Self.endedSink(structure) else { return nil }
                self = .sinkEnded(path: ended)
                return
            }
            self = .element(
                ElementMessage(
                    path: path(), factory: Self.factory(of: message),
                    name: gst_structure_get_name(structure).map { String(cString: $0) } ?? "",
                    fields: GStreamerKit.fields(of: structure)))
        default:
            return nil
        }
    }

    /// The sink whose end a bin forwarded. Nested bins forward to their parents.
    private static func endedSink(_ structure: UnsafePointer<GstStructure>) -> [String]? {
        guard let value = gst_structure_get_value(structure, "message"),
            let inner = g_value_get_boxed(value)?.assumingMemoryBound(to: GstMessage.self)
        else { return nil }
        if inner.pointee.type == GST_MESSAGE_EOS { return inner.pointee.src.map(objectPath) }
        guard inner.pointee.type == GST_MESSAGE_ELEMENT, let structure = gst_message_get_structure(inner),
            gst_structure_has_name(structure, "GstBinForwarded") != 0
        else { return nil }
        return endedSink(structure)
    }

    private static func factory(of message: UnsafeMutablePointer<GstMessage>) -> String {
        guard let source = message.pointee.src else { return "" }
        let instance = UnsafeMutableRawPointer(source)
        guard
            g_type_check_instance_is_a(
                instance.assumingMemoryBound(to: GTypeInstance.self), gst_element_get_type()) != 0,
            let factory = gst_element_get_factory(instance.assumingMemoryBound(to: GstElement.self))
        else { return "" }
        let object = UnsafeMutableRawPointer(factory).assumingMemoryBound(to: GstObject.self)
        return takeString(gst_object_get_name(object)) ?? ""
    }
}

extension BusRemark {
    fileprivate init(
        _ message: UnsafeMutablePointer<GstMessage>,
        _ parse: (
            UnsafeMutablePointer<GstMessage>?, UnsafeMutablePointer<UnsafeMutablePointer<GError>?>?,
            UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        ) -> Void
    ) {
        var error: UnsafeMutablePointer<GError>?
        var debug: UnsafeMutablePointer<CChar>?
        parse(message, &error, &debug)
        path = message.pointee.src.map(objectPath) ?? []
        detail = takeString(debug) ?? ""
        self.message = error.map { String(cString: $0.pointee.message) } ?? ""
        g_clear_error(&error)
    }
}

extension QualityOfService {
    fileprivate init(_ message: UnsafeMutablePointer<GstMessage>, path: [String]) {
        var isLive: gboolean = 0
        var runningTime: UInt = 0
        gst_message_parse_qos(message, &isLive, &runningTime, nil, nil, nil)
        var lateness: Int = 0
        gst_message_parse_qos_values(message, &lateness, nil, nil)
        var processed: UInt = 0
        var dropped: UInt = 0
        gst_message_parse_qos_stats(message, nil, &processed, &dropped)
        self.path = path
        self.isLive = isLive != 0
        self.runningTime = runningTime == UInt.max ? nil : UInt64(runningTime)
        self.lateness = Int64(lateness)
        self.processed = UInt64(processed)
        self.dropped = UInt64(dropped)
    }
}
