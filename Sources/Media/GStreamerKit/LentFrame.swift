internal import CGLib
internal import CGStreamer

/// A frame in memory that is lent until its last reference is released, such as a buffer of a camera's driver.
package protocol LentFrame: AnyObject, Sendable {
    /// The number of pieces of memory.
    var pieces: Int { get }
    /// Gives the bytes of a piece to `body`. They have the same address at each call, and nothing changes them while the
    /// frame is referenced.
    func withBytes<Result>(plane: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result
}

/// The colour planes of a raw frame.
package struct FramePlanes: Sendable {
    /// GStreamer's name.
    package let pixelFormat: String
    package let width: Int
    package let height: Int
    /// For each plane its first byte, from the start of the frame, and the bytes from row to row.
    fileprivate let planes: [(offset: Int, stride: Int)]

    package init(_ pixelFormat: String, width: Int, height: Int, _ planes: [(offset: Int, stride: Int)]) {
        (self.pixelFormat, self.width, self.height, self.planes) = (pixelFormat, width, height, planes)
    }
}

extension PushSource {
    /// Queues a frame in its own memory. The last reference is released on the thread of the last reader; if the frame is
    /// refused, before this returns. Writers have to copy it.
    ///
    /// - Parameters:
    ///   - planes: nil for encoded frames.
    ///   - isCopied: whether to copy the frame, so that its memory is not held.
    /// - Returns: false if the element does not run.
    package func push(
        _ frame: some LentFrame, _ planes: FramePlanes?, timestamp: UInt64, isCopied: Bool = false
    ) -> Bool {
        guard let buffer = isCopied ? copy(of: frame) : loan(of: frame) else { return false }
        guard let planes else { return push(buffer, at: timestamp) }
        addPlanes(planes.planes, planes.pixelFormat, planes.width, planes.height, to: buffer)
        guard let aligned = aligned(buffer, planes.planes, planes.pixelFormat, planes.width, planes.height) else {
            return false
        }
        return push(aligned, at: timestamp)
    }

    private func loan(of frame: some LentFrame) -> UnsafeMutablePointer<GstBuffer>? {
        guard let buffer = gst_buffer_new() else { return nil }
        for piece in 0..<frame.pieces {
            let memory = frame.withBytes(plane: piece) { bytes in
                bytes.withUnsafeBytes { bytes in
                    // Nothing writes to memory with this flag. It retains the frame, and with it the bytes.
                    gst_memory_new_wrapped(
                        GST_MEMORY_FLAG_READONLY, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                        gsize(bytes.count), 0, gsize(bytes.count), Unmanaged.passRetained(frame).toOpaque(),
                        releaseBox)
                }
            }
            gst_buffer_append_memory(buffer, memory)
        }
        return buffer
    }

    private func copy(of frame: some LentFrame) -> UnsafeMutablePointer<GstBuffer>? {
        let count = (0..<frame.pieces).map { frame.withBytes(plane: $0) { $0.byteCount } }.reduce(0, +)
        guard let buffer = gst_buffer_new_allocate(nil, gsize(count), nil) else { return nil }
        var offset: gsize = 0
        for piece in 0..<frame.pieces {
            frame.withBytes(plane: piece) { bytes in
                bytes.withUnsafeBytes { bytes in
                    offset += gst_buffer_fill(buffer, offset, bytes.baseAddress, gsize(bytes.count))
                }
            }
        }
        return buffer
    }
}
