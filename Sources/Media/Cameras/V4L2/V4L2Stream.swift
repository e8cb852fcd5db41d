internal import CV4L2
internal import Glibc
internal import MediaGraph
import Synchronization

/// The mapped buffers of a device that streams. It lives as long as its frames.
final class V4L2Stream: Sendable {
    private let path: String
    private let type: UInt32
    private let planeCount: Int
    private let buffers: [Mapping]

    private struct State: Sendable {
        /// Nil once the stream has ended. Frames that return later have no queue.
        var descriptor: V4L2Descriptor?
        /// Buffers that the driver refused to queue.
        var refused: [Int] = []
        /// The number of buffers with frames that were given out.
        var lent = 0
    }

    /// The devices from which this process captures.
    private static let running = Mutex<Set<UInt>>([])

    static func isRunning(on descriptor: V4L2Descriptor) -> Bool {
        running.withLock { $0.contains(descriptor.device) }
    }

    // Frames return on other threads.
    private let state: Mutex<State>

    /// Makes, maps and queues buffers, and starts to stream.
    init(_ descriptor: V4L2Descriptor, _ type: UInt32, planes: Int, buffers wish: Int) throws(MediaError) {
        path = descriptor.path
        self.type = type
        planeCount = planes
        let count = cv4l2_request_buffers(descriptor.number, type, UInt32(clamping: max(wish, 1)))
        try descriptor.check("VIDIOC_REQBUFS", count)
        var mappings: [Mapping] = []
        do throws(MediaError) {
            for index in 0..<UInt32(count) { mappings.append(try Mapping(descriptor, type, index, planes)) }
            for index in mappings.indices {
                try descriptor.check(
                    "VIDIOC_QBUF", cv4l2_queue_buffer(descriptor.number, type, UInt32(index), UInt32(planes)))
            }
            try descriptor.check("VIDIOC_STREAMON", cv4l2_stream(descriptor.number, type, 1))
        } catch {
            mappings = []
            _ = cv4l2_stream(descriptor.number, type, 0)
            _ = cv4l2_request_buffers(descriptor.number, type, 0)
            throw error
        }
        buffers = mappings
        state = Mutex(State(descriptor: descriptor))
        _ = Self.running.withLock { $0.insert(descriptor.device) }
    }

    /// The next frame; nil if none is ready.
    func dequeue() throws(MediaError) -> CapturedFrame? {
        guard let descriptor = state.withLock({ $0.descriptor }) else { return nil }
        var buffer = cv4l2_buffer()
        let result = cv4l2_dequeue_buffer(descriptor.number, type, UInt32(planeCount), &buffer)
        if result == -EAGAIN { return nil }
        try descriptor.check("VIDIOC_DQBUF", result)
        guard buffers.indices.contains(Int(buffer.index)) else { throw MediaError("VIDIOC_DQBUF", EINVAL, on: path) }
        let ranges = buffers[Int(buffer.index)].ranges(of: buffer)
        let lent = state.withLock { state in
            state.lent += 1
            return state.lent
        }
        return CapturedFrame(
            Lent(stream: self, index: Int(buffer.index), ranges: ranges), lengths: ranges.map(\.count),
            timestamp: Self.timestamp(of: buffer), sequence: buffer.sequence,
            isCorrupt: buffer.flags & Self.corrupt != 0, isKeyframe: buffer.flags & Self.keyframe != 0,
            spare: buffers.count - lent)
    }

    /// V4L2_BUF_FLAG_ERROR, _KEYFRAME, _TIMESTAMP_MASK and _TIMESTAMP_MONOTONIC.
    private static let (corrupt, keyframe): (UInt32, UInt32) = (0x40, 0x8)
    private static let (clockMask, monotonic): (UInt32, UInt32) = (0xe000, 0x2000)

    private static func timestamp(of buffer: cv4l2_buffer) -> Duration? {
        let time = Duration.seconds(buffer.seconds) + .microseconds(buffer.microseconds)
        return buffer.flags & clockMask == monotonic && time > .zero ? time : nil
    }

    /// Returns a frame's buffer to the driver. Any thread.
    fileprivate func giveBack(_ index: Int) {
        state.withLock { $0.lent -= 1 }
        queue(index)
    }

    private func queue(_ index: Int) {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            let result = cv4l2_queue_buffer(descriptor.number, type, UInt32(index), UInt32(planeCount))
            if result < 0 { state.refused.append(index) }
        }
    }

    var hasRefused: Bool { state.withLock { !$0.refused.isEmpty } }

    /// Offers the buffers again that the driver refused.
    func queueRefused() {
        let refused = state.withLock { state in
            defer { state.refused = [] }
            return state.refused
        }
        for index in refused { queue(index) }
    }

    /// Stops to stream. Frames stay readable, because their memory is mapped as long as this object lives.
    func end() {
        let descriptor = state.withLock { state in
            defer { state.descriptor = nil }
            return state.descriptor
        }
        guard let descriptor else { return }
        _ = Self.running.withLock { $0.remove(descriptor.device) }
        _ = cv4l2_stream(descriptor.number, type, 0)
        // Kernels before 5.0 refuse while frames are held; the buffers are then freed with the last frame.
        _ = cv4l2_request_buffers(descriptor.number, type, 0)
    }

    /// The memory of one buffer.
    // @unchecked: the pointers never change, and nothing is written through them.
    private final class Mapping: @unchecked Sendable {
        private var planes: [UnsafeRawBufferPointer] = []

        init(_ descriptor: V4L2Descriptor, _ type: UInt32, _ index: UInt32, _ count: Int) throws(MediaError) {
            var buffer = cv4l2_buffer()
            try descriptor.check(
                "VIDIOC_QUERYBUF", cv4l2_query_buffer(descriptor.number, type, index, UInt32(count), &buffer))
            let (offsets, lengths) = (array(buffer.offsets), array(buffer.lengths))
            for plane in 0..<count {
                var error: Int32 = 0
                let start = cv4l2_map(descriptor.number, offsets[plane], lengths[plane], &error)
                guard let start else { throw MediaError("mmap", error, on: descriptor.path) }
                planes.append(UnsafeRawBufferPointer(start: start, count: Int(lengths[plane])))
            }
        }

        deinit {
            for plane in planes { munmap(UnsafeMutableRawPointer(mutating: plane.baseAddress), plane.count) }
        }

        /// The data in each plane, never beyond the mapped memory.
        func ranges(of buffer: cv4l2_buffer) -> [Range<Int>] {
            let (starts, ends) = (array(buffer.starts), array(buffer.ends))
            return planes.indices.map { plane in
                let end = min(Int(ends[plane]), planes[plane].count)
                return min(Int(starts[plane]), end)..<end
            }
        }

        func withBytes<Result>(_ plane: Int, _ range: Range<Int>, _ body: (RawSpan) throws -> Result) rethrows -> Result
        {
            try body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: planes[plane][range])))
        }
    }

    /// The buffer of a frame.
    private struct Lent: CapturedFrame.Memory {
        let stream: V4L2Stream
        let index: Int
        let ranges: [Range<Int>]

        func withBytes<Result>(_ plane: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result {
            try stream.buffers[index].withBytes(plane, ranges[plane], body)
        }

        func giveBack() { stream.giveBack(index) }
    }
}

/// The elements of C's array of eight.
private func array(_ tuple: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)) -> [UInt32] {
    [tuple.0, tuple.1, tuple.2, tuple.3, tuple.4, tuple.5, tuple.6, tuple.7]
}
