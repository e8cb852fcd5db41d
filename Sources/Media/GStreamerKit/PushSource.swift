internal import CGLib
internal import CGStreamer
package import MediaGraph

/// A live source for data that the program pushes. The corresponding C type is `GstAppSrc`.
package struct PushSource: Sendable {
    package let element: Element

    /// Properties of an appsrc for a live stream whose sender does not wait.
    package static let properties: [String: SettingValue] = [
        "is-live": true, "format": "time", "block": false, "do-timestamp": false, "max-bytes": 0,
        "max-buffers": 0, "max-time": 0, "emit-signals": false,
    ]

    /// Pushes into an appsrc with `properties`.
    package init(_ element: Element) {
        precondition(element.factory == "appsrc")
        self.element = element
    }

    /// Pushes into a new appsrc. The format has to be set before the first push.
    package init() throws(MediaError) {
        element = try Element("appsrc", Self.properties)
    }

    var source: UnsafeMutablePointer<GstAppSrc> {
        UnsafeMutableRawPointer(element.pointer).assumingMemoryBound(to: GstAppSrc.self)
    }

    /// The number of waiting buffers.
    package var waiting: Int { Int(gst_app_src_get_current_level_buffers(source)) }

    package var waitingBytes: Int { Int(gst_app_src_get_current_level_bytes(source)) }

    /// Copies bytes into a new buffer and queues it. `decodedAt` is the timestamp for frames in the order of display.
    /// Returns false if the element does not run.
    package func push(
        _ bytes: RawSpan, timestamp: UInt64, decodedAt: UInt64? = nil, isKeyframe: Bool = true, duration: UInt64? = nil
    ) -> Bool {
        guard let buffer = gst_buffer_new_allocate(nil, gsize(bytes.byteCount), nil) else { return false }
        bytes.withUnsafeBytes { source in
            _ = gst_buffer_fill(buffer, 0, source.baseAddress, gsize(source.count))
        }
        if let duration { buffer.pointee.duration = UInt(duration) }
        if !isKeyframe { buffer.pointee.mini_object.flags |= GST_BUFFER_FLAG_DELTA_UNIT.rawValue }
        return push(buffer, at: timestamp, decodedAt: UInt(decodedAt ?? timestamp))
    }

    /// Lets `body` draw into a frame of the pool and queues it without a copy. Returns false if the element does not
    /// run.
    package func push(
        from pool: PicturePool, timestamp: UInt64, at time: MediaTime,
        _ body: (inout MutableVideoFrame) throws -> Void
    ) throws -> Bool {
        guard let buffer = try pool.draw(at: time, body) else { return false }
        return push(buffer, at: timestamp)
    }

    /// Lets `body` write this many signed 16-bit samples into a new buffer and queues it. Returns false if the element
    /// does not run.
    package func push(
        samples: Int, timestamp: UInt64, _ body: (inout MutableSpan<Int16>) throws -> Void
    ) throws -> Bool {
        guard samples > 0, let buffer = gst_buffer_new_allocate(nil, gsize(samples * 2), nil) else { return false }
        var map = GstMapInfo()
        guard gst_buffer_map(buffer, &map, GST_MAP_WRITE) != 0 else {
            gst_buffer_unref(buffer)
            return false
        }
        do {
            let memory = UnsafeMutableRawBufferPointer(start: map.data, count: samples * 2)
            memory.initializeMemory(as: UInt8.self, repeating: 0)
            var span = memory.bindMemory(to: Int16.self).mutableSpan
            try body(&span)
        } catch {
            gst_buffer_unmap(buffer, &map)
            gst_buffer_unref(buffer)
            throw error
        }
        gst_buffer_unmap(buffer, &map)
        return push(buffer, at: timestamp)
    }

    /// Pushes the first RTP packet of a stream, and declares its sequence number to the jitter buffer downstream, which then
    /// passes it on at once. Otherwise the buffer waits for a second packet, because an earlier one may follow.
    ///
    /// Takes the declaration back behind the packet: a buffer drops all packets before the declared one for as long as the
    /// caps name it, also those of a later stream.
    package func push(first packet: RawSpan, sequenceNumber: UInt16, timestamp: UInt64) -> Bool {
        guard let pointer = gst_app_src_get_caps(source) else { return push(packet, timestamp: timestamp) }
        let caps = Caps(takingOwnership: pointer)
        setFormat(Caps("\(caps.description), seqnum-base=(uint)\(sequenceNumber)"))
        defer { setFormat(caps) }
        return push(packet, timestamp: timestamp)
    }

    /// The caps of further data.
    package var format: Caps? { gst_app_src_get_caps(source).map(Caps.init(takingOwnership:)) }

    /// Sets the caps of further data.
    package func setFormat(_ caps: Caps) {
        gst_app_src_set_caps(source, caps.pointer)
    }

    /// Calls `body` once, on a streaming thread, when the element plays and needs data.
    package func whenFirstWanted(_ body: @escaping @Sendable () -> Void) {
        var callbacks = GstAppSrcCallbacks()
        callbacks.need_data = { source, _, data in
            let body = Box<@Sendable () -> Void>.value(at: data)
            var none = GstAppSrcCallbacks()
            gst_app_src_set_callbacks(source, &none, nil, nil)
            body?()
        }
        gst_app_src_set_callbacks(source, &callbacks, Box(body).retained, releaseBox)
    }

    /// Cancels `whenFirstWanted` and releases its closure.
    package func forgetFirstWanted() {
        var callbacks = GstAppSrcCallbacks()
        gst_app_src_set_callbacks(source, &callbacks, nil, nil)
    }

    /// Whether the downstream elements accept this format, as far as they can be queried.
    package func peerTakes(_ caps: Caps) -> Bool {
        guard let taken = gst_pad_peer_query_caps(element.source.pointer, nil) else { return true }
        return Caps(takingOwnership: taken).meets(caps)
    }

    /// Queues a frame without a copy.
    package func push(_ picture: VideoBuffer, timestamp: UInt64) -> Bool {
        // A shallow copy: the samples are shared, the timestamp is separate.
        guard let buffer = gst_buffer_copy_region(picture.buffer, copyAll, 0, gsize.max) else { return false }
        return push(buffer, at: timestamp)
    }

    /// Sets the format of further frames.
    package func setFormat(of picture: VideoBuffer) {
        gst_video_info_to_caps(&picture.format.info).map { setFormat(Caps(takingOwnership: $0)) }
    }

    /// Takes the buffer's ownership.
    func push(_ buffer: UnsafeMutablePointer<GstBuffer>, at timestamp: UInt64, decodedAt: UInt = UInt.max) -> Bool {
        buffer.pointee.pts = UInt(timestamp)
        buffer.pointee.dts = decodedAt
        return gst_app_src_push_buffer(source, buffer) == GST_FLOW_OK
    }

    package func endOfStream() {
        gst_app_src_end_of_stream(source)
    }
}

private let copyAll = GstBufferCopyFlags(
    rawValue: GST_BUFFER_COPY_FLAGS.rawValue | GST_BUFFER_COPY_TIMESTAMPS.rawValue | GST_BUFFER_COPY_META.rawValue
        | GST_BUFFER_COPY_MEMORY.rawValue)
