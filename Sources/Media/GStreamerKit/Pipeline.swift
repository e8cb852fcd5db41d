internal import CGLib
internal import CGStreamer

/// What a pipeline says on its bus.
package enum BusMessage: Sendable {
    case endOfStream
    case error(PipelineFailure)
    /// Something cannot be decoded because a plugin is not installed.
    case missingPlugin(String)
    case latencyChanged
}

/// An error of an element.
package struct PipelineFailure: Sendable {
    package enum Kind: Sendable {
        case notFound
        case busy
        case cannotOpen
        case noSuchCodec
        case windowClosed
        case other
    }

    package let kind: Kind
    /// Names of the element and of the bins around it, innermost first.
    package let path: [String]
    package let message: String
    package let detail: String
}

/// A GStreamer pipeline on the monotonic system clock. The corresponding C type is `GstPipeline`.
// @unchecked: the pointer never changes, and a GstPipeline guards itself with its own locks.
package final class Pipeline: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<GstElement>
    private let bus: UnsafeMutablePointer<GstBus>

    /// `onMessage` is called on whatever thread an element spoke from, and must not block or change states.
    package init(onMessage: @escaping @Sendable (BusMessage) -> Void) {
        GStreamer.load()
        guard let made = gst_pipeline_new(nil), let bus = gst_element_get_bus(made) else {
            preconditionFailure("GStreamer cannot make a pipeline")
        }
        gst_object_ref_sink(made)
        pointer = made
        self.bus = bus
        let clock = gst_system_clock_obtain()
        gst_pipeline_use_clock(UnsafeMutableRawPointer(made).assumingMemoryBound(to: GstPipeline.self), clock)
        gst_object_unref(clock)
        gst_bus_set_sync_handler(
            bus,
            { _, message, data in
                guard let message else { return GST_BUS_PASS }
                if let translated = BusMessage(message) {
                    Box<@Sendable (BusMessage) -> Void>.value(at: data)?(translated)
                }
                // Nobody reads the bus later: every message ends here.
                gst_message_unref(message)
                return GST_BUS_DROP
            }, Box(onMessage).retained, releaseBox)
    }

    deinit {
        gst_element_set_state(pointer, GST_STATE_NULL)
        gst_bus_set_sync_handler(bus, nil, nil, nil)
        gst_object_unref(bus)
        gst_object_unref(pointer)
    }

    private var bin: UnsafeMutablePointer<GstBin> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstBin.self)
    }

    package func add(_ element: Element) {
        precondition(gst_bin_add(bin, element.pointer) != 0, "\(element.factory) has a parent already")
    }

    /// Takes an element out; it goes to NULL. Not from a streaming thread.
    package func remove(_ element: Element) {
        gst_bin_remove(bin, element.pointer)
        element.close()
    }

    /// Starts everything. False when an element refused; the bus says why.
    ///
    /// Running time counts from this call, so that threads which start before the last element plays know it too.
    package func play() -> Bool {
        gst_element_set_start_time(pointer, UInt.max)
        gst_element_set_base_time(pointer, gst_util_get_timestamp())
        return gst_element_set_state(pointer, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE
    }

    /// Waits until the pipeline plays, or the time is over.
    package func waitUntilPlaying(milliseconds: Int) -> Bool {
        gst_element_get_state(pointer, nil, nil, UInt(milliseconds) * 1_000_000) == GST_STATE_CHANGE_SUCCESS
    }

    /// Stops everything and waits until all streaming threads have left. Not from a streaming thread.
    package func stop() {
        gst_element_set_state(pointer, GST_STATE_NULL)
    }

    package func distributeLatency() {
        gst_bin_recalculate_latency(bin)
    }

    /// Nanoseconds on the monotonic clock at which running time was 0.
    package var baseTime: UInt64 { UInt64(gst_element_get_base_time(pointer)) }

    /// Nanoseconds since the pipeline started to play.
    package var runningTime: UInt64 {
        let now = UInt64(gst_util_get_timestamp())
        let base = baseTime
        return now > base ? now - base : 0
    }
}

extension BusMessage {
    init?(_ message: UnsafeMutablePointer<GstMessage>) {
        switch message.pointee.type {
        case GST_MESSAGE_EOS:
            self = .endOfStream
        case GST_MESSAGE_LATENCY:
            self = .latencyChanged
        case GST_MESSAGE_ERROR:
            self = .error(PipelineFailure(message))
        case GST_MESSAGE_ELEMENT where gst_is_missing_plugin_message(message) != 0:
            self = .missingPlugin(takeString(gst_missing_plugin_message_get_description(message)) ?? "a decoder")
        default:
            return nil
        }
    }
}

extension PipelineFailure {
    fileprivate init(_ message: UnsafeMutablePointer<GstMessage>) {
        var error: UnsafeMutablePointer<GError>?
        var debug: UnsafeMutablePointer<CChar>?
        gst_message_parse_error(message, &error, &debug)
        detail = takeString(debug) ?? ""
        var path: [String] = []
        var object = message.pointee.src.map { gst_object_ref($0)?.assumingMemoryBound(to: GstObject.self) } ?? nil
        while let current = object {
            path.append(takeString(gst_object_get_name(current)) ?? "")
            object = gst_object_get_parent(current)
            gst_object_unref(current)
        }
        self.path = path
        guard let error else {
            kind = .other
            self.message = "unknown error"
            return
        }
        self.message = String(cString: error.pointee.message)
        kind = Self.kind(domain: error.pointee.domain, code: error.pointee.code, message: self.message)
        g_error_free(error)
    }

    private static func kind(domain: GQuark, code: Int32, message: String) -> Kind {
        if domain == gst_resource_error_quark() {
            switch UInt32(bitPattern: code) {
            case GST_RESOURCE_ERROR_NOT_FOUND.rawValue:
                return message.contains("window was closed") ? .windowClosed : .notFound
            case GST_RESOURCE_ERROR_BUSY.rawValue: return .busy
            case GST_RESOURCE_ERROR_OPEN_READ.rawValue, GST_RESOURCE_ERROR_OPEN_READ_WRITE.rawValue,
                GST_RESOURCE_ERROR_OPEN_WRITE.rawValue:
                return .cannotOpen
            default: return .other
            }
        }
        if domain == gst_stream_error_quark() {
            switch UInt32(bitPattern: code) {
            case GST_STREAM_ERROR_CODEC_NOT_FOUND.rawValue, GST_STREAM_ERROR_TYPE_NOT_FOUND.rawValue,
                GST_STREAM_ERROR_WRONG_TYPE.rawValue:
                return .noSuchCodec
            default: return .other
            }
        }
        return .other
    }
}
