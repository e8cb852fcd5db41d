internal import CGLib
internal import CGStreamer
import MediaGraph
import Synchronization

/// A message of a pipeline's bus.
package enum BusMessage: Sendable {
    case endOfStream
    case error(PipelineFailure)
    /// Of the element with this path: its name and those of its parent bins, innermost first.
    case warning(path: [String], message: String)
    /// A missing plugin, for media that cannot be decoded.
    case missingPlugin(String)
    case latencyChanged
    /// An element asks that the pipeline plays, or does not: the sound server has returned its stream, or silenced it.
    case stateRequested(isPlaying: Bool)
}

/// An error of an element.
package struct PipelineFailure: Sendable {
    package enum Kind: Sendable {
        case notFound
        case busy
        case cannotOpen
        /// The disk is full.
        case noSpace
        case cannotWrite
        case noSuchCodec
        case windowClosed
        case other
    }

    package let kind: Kind
    /// Names of the element and its parent bins, innermost first.
    package let path: [String]
    package let message: String
    package let detail: String
}

/// A GStreamer pipeline. The corresponding C type is `GstPipeline`.
// @unchecked: the pointer never changes, and a GstPipeline has its own locks.
package final class Pipeline: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<GstElement>
    private let bus: UnsafeMutablePointer<GstBus>

    /// The same at all times: GStreamer would else choose one of its elements' clocks.
    package let clock: PipelineClock

    /// When the pipeline was paused, on its clock. Nil if it is not paused.
    private let pausedAt = Mutex<UInt64?>(nil)

    /// `onMessage` is called on the posting element's thread. It must not block or change states.
    package init(clock: PipelineClock = .monotonic, onMessage: @escaping @Sendable (BusMessage) -> Void) {
        GStreamer.load()
        guard let made = gst_pipeline_new(nil), let bus = gst_element_get_bus(made) else {
            preconditionFailure("GStreamer cannot create a pipeline")
        }
        gst_object_ref_sink(made)
        Self.prepareChildren(of: made)
        pointer = made
        self.bus = bus
        self.clock = clock
        gst_pipeline_use_clock(UnsafeMutableRawPointer(made).assumingMemoryBound(to: GstPipeline.self), clock.pointer)
        gst_bus_set_sync_handler(
            bus,
            { _, message, data in
                guard let message else { return GST_BUS_PASS }
                if let translated = BusMessage(message) { Box<MessageBody>.value(at: data)?(translated) }
                // The bus has no other reader, so every message ends here.
                gst_message_unref(message)
                return GST_BUS_DROP
            }, Box(onMessage as MessageBody).retained, releaseBox)
    }

    deinit {
        gst_element_set_state(pointer, GST_STATE_NULL)
        gst_bus_set_sync_handler(bus, nil, nil, nil)
        gst_object_unref(bus)
        gst_object_unref(pointer)
    }

    /// Prepares elements that are created inside a bin, such as the decoders of a decodebin.
    private static func prepareChildren(of pipeline: UnsafeMutablePointer<GstElement>) {
        onSignal("deep-element-added", of: pipeline) { arguments, _ in
            guard let bin = g_value_get_object(arguments + 1), let child = g_value_get_object(arguments + 2) else {
                return
            }
            XElements.prepare(for: child.assumingMemoryBound(to: GstElement.self))
            AutomaticDecoders.prepare(
                child.assumingMemoryBound(to: GstElement.self), in: bin.assumingMemoryBound(to: GstElement.self))
        }
    }

    private var bin: UnsafeMutablePointer<GstBin> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstBin.self)
    }

    /// Adds an element. In a running pipeline, it starts with `followPipeline()` after it is linked. A sink then needs
    /// `async=false`, or the whole pipeline waits for its first buffer.
    package func add(_ element: Element) {
        precondition(gst_bin_add(bin, element.pointer) != 0, "\(element.factory) already has a parent")
    }

    /// Removes an element and changes it to NULL. Not on a streaming thread.
    package func remove(_ element: Element) {
        gst_bin_remove(bin, element.pointer)
        element.close()
    }

    /// Starts all elements. Returns false if one refuses; the bus has the reason.
    ///
    /// Running time counts from this call, so that threads that start before the last element plays know it too. With
    /// `elapsed`, so many nanoseconds have passed already.
    package func play(elapsed: UInt64 = 0) -> Bool {
        pausedAt.withLock { $0 = nil }
        gst_element_set_start_time(pointer, UInt.max)
        let now = clock.now.nanoseconds
        gst_element_set_base_time(pointer, UInt(now - min(now, elapsed)))
        return gst_element_set_state(pointer, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE
    }

    /// Pauses all elements: live sources deliver nothing, and clocked sinks show nothing. Running time stops and later
    /// omits the pause. Does nothing if the pipeline is paused. Returns false if an element refuses. Not on a streaming
    /// thread.
    @discardableResult
    package func pause() -> Bool {
        let isFirst = pausedAt.withLock { pausedAt -> Bool in
            guard pausedAt == nil else { return false }
            pausedAt = clock.now.nanoseconds
            return true
        }
        guard isFirst else { return true }
        let isAccepted = gst_element_set_state(pointer, GST_STATE_PAUSED) != GST_STATE_CHANGE_FAILURE
        // Sources pause last and produce frames until then. If running time began again before these frames, the next
        // ones would have earlier timestamps.
        pausedAt.withLock { pausedAt in if pausedAt != nil { pausedAt = clock.now.nanoseconds } }
        return isAccepted
    }

    /// Whether the pipeline is paused.
    package var isPaused: Bool { pausedAt.withLock { $0 != nil } }

    /// Continues after a pause. Does nothing without one. Not on a streaming thread.
    package func resume() {
        let wasPaused = pausedAt.withLock { pausedAt in
            guard let paused = pausedAt else { return false }
            // GStreamer would do this itself if `play` had not set the start time.
            let length = clock.now.nanoseconds - paused
            gst_element_set_base_time(pointer, gst_element_get_base_time(pointer) + UInt(length))
            pausedAt = nil
            return true
        }
        if wasPaused { gst_element_set_state(pointer, GST_STATE_PLAYING) }
    }

    /// The running time at a time of the clock, in nanoseconds. Nil while the pipeline is paused or has not played.
    package func runningTime(at time: UInt64) -> UInt64? {
        pausedAt.withLock { pausedAt in
            let base = UInt64(gst_element_get_base_time(pointer))
            guard pausedAt == nil, base > 0 else { return nil }
            return time > base ? time - base : 0
        }
    }

    /// Stops everything and waits until all streaming threads have left. Not from a streaming thread.
    package func stop() {
        gst_element_set_state(pointer, GST_STATE_NULL)
    }

    package func distributeLatency() {
        gst_bin_recalculate_latency(bin)
    }

    /// Sets how long after its timestamp media is rendered, instead of the latency of the elements.
    package func setLatency(seconds: Double) {
        gst_pipeline_set_latency(
            UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstPipeline.self), UInt(seconds * 1e9))
        // Without asking the elements, which may be changing their formats.
        gst_element_send_event(pointer, gst_event_new_latency(UInt(seconds * 1e9)))
    }

    /// Running time 0 on the pipeline's clock, in nanoseconds.
    package var baseTime: UInt64 { UInt64(gst_element_get_base_time(pointer)) }

    /// Nanoseconds that the pipeline has played since its start, without pauses.
    package var runningTime: UInt64 {
        let now = pausedAt.withLock { $0 } ?? clock.now.nanoseconds
        let base = baseTime
        return now > base ? now - base : 0
    }
}

private typealias MessageBody = @Sendable (BusMessage) -> Void

extension BusMessage {
    init?(_ message: UnsafeMutablePointer<GstMessage>) {
        switch message.pointee.type {
        case GST_MESSAGE_EOS:
            self = .endOfStream
        case GST_MESSAGE_LATENCY:
            self = .latencyChanged
        case GST_MESSAGE_REQUEST_STATE:
            var state = GST_STATE_NULL
            gst_message_parse_request_state(message, &state)
            self = .stateRequested(isPlaying: state == GST_STATE_PLAYING)
        case GST_MESSAGE_ERROR:
            self = .error(PipelineFailure(message))
        case GST_MESSAGE_WARNING:
            var error: UnsafeMutablePointer<GError>?
            gst_message_parse_warning(message, &error, nil)
            defer { g_clear_error(&error) }
            self = .warning(
                path: message.pointee.src.map(objectPath) ?? [],
                message: error.map { String(cString: $0.pointee.message) } ?? "")
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
        path = message.pointee.src.map(objectPath) ?? []
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
        let (resource, stream) = (gst_resource_error_quark(), gst_stream_error_quark())
        return switch (domain, UInt32(bitPattern: code)) {
        case (resource, GST_RESOURCE_ERROR_NOT_FOUND.rawValue):
            message.contains("window was closed") ? .windowClosed : .notFound
        case (resource, GST_RESOURCE_ERROR_BUSY.rawValue): .busy
        case (resource, GST_RESOURCE_ERROR_OPEN_READ.rawValue), (resource, GST_RESOURCE_ERROR_OPEN_WRITE.rawValue),
            (resource, GST_RESOURCE_ERROR_OPEN_READ_WRITE.rawValue):
            .cannotOpen
        case (resource, GST_RESOURCE_ERROR_NO_SPACE_LEFT.rawValue): .noSpace
        // hlssink2 reports a full disk only in its text.
        case (resource, GST_RESOURCE_ERROR_WRITE.rawValue), (resource, GST_RESOURCE_ERROR_CLOSE.rawValue),
            (resource, GST_RESOURCE_ERROR_SEEK.rawValue), (resource, GST_RESOURCE_ERROR_SYNC.rawValue):
            message.contains("No space left") ? .noSpace : .cannotWrite
        case (stream, GST_STREAM_ERROR_CODEC_NOT_FOUND.rawValue), (stream, GST_STREAM_ERROR_TYPE_NOT_FOUND.rawValue),
            (stream, GST_STREAM_ERROR_WRONG_TYPE.rawValue):
            .noSuchCodec
        default: .other
        }
    }
}
