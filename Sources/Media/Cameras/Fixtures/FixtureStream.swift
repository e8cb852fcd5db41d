import Synchronization

/// The frames of a recorded camera that streams.
final class FixtureStream {
    let start: Duration
    private let camera: FixtureCamera
    private let layout: CaptureLayout
    private let rate: FrameRate
    private let buffers: Int
    /// Frames that hold a buffer.
    private let held = Held()
    private var nextCapture: Duration
    private var sequence: UInt32 = 0
    /// The number of the frame that shows the first recorded one, and the request for which it does.
    private var first: (number: UInt32, request: Duration?) = (0, nil)
    private var ready: [(arrival: Duration, frame: CapturedFrame)] = []

    init(_ camera: FixtureCamera, _ layout: CaptureLayout, buffers: Int, rate: FrameRate) {
        self.camera = camera
        self.layout = layout
        self.buffers = buffers
        self.rate = rate
        start = camera.clock.now
        first.request = camera.keyframeRequest
        nextCapture = start + (camera.fixture.timing?.firstFrame.map { .seconds($0) } ?? rate.interval)
    }

    /// Captures the frames that are due. Without a free buffer, a frame is lost, and its number missing.
    func capture(until now: Duration) {
        while nextCapture <= now {
            let time = nextCapture
            nextCapture += camera.rate(at: time, of: rate).interval
            if camera.fault(.silent, at: time) != nil { continue }
            defer { sequence &+= 1 }
            guard camera.fault(.dropping, at: time) == nil, held.count < buffers else { continue }
            let late = camera.fault(.late, at: time)?.by ?? 0
            ready.append((time + .seconds(late), frame(at: time)))
        }
    }

    func next(_ now: Duration) -> CapturedFrame? {
        guard let first = ready.first, first.arrival <= now else { return nil }
        return ready.removeFirst().frame
    }

    /// The time of the next frame.
    var nextArrival: Duration { ready.first.map { min($0.arrival, nextCapture) } ?? nextCapture }

    private func frame(at time: Duration) -> CapturedFrame {
        let fixture = camera.fixture
        // A source that changed gives frames that do not fit the layout.
        let hasChanged = !camera.faults(.changedSource, after: start, until: time).isEmpty
        // A stream begins with a keyframe.
        let request = camera.keyframeRequest
        if request != first.request { first = (sequence, request) }
        var bytes = FixturePattern.bytes(of: fixture, layout, number: sequence &- first.number)
        if camera.fault(.cut, at: time) != nil { bytes.removeLast(bytes.count / 2) }
        let shift = camera.fault(.shiftedTime, at: time)?.by ?? 0
        held.add(1)
        return CapturedFrame(
            Memory(bytes: bytes, held: held), lengths: [bytes.count],
            timestamp: fixture.quirks?.hasNoTimestamps == true ? nil : time + .seconds(shift),
            sequence: fixture.quirks?.countsNothing == true ? 0 : sequence,
            isCorrupt: hasChanged || camera.fault(.corrupt, at: time) != nil, spare: buffers - held.count)
    }

    private final class Held: Sendable {
        private let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
        func add(_ count: Int) { value.withLock { $0 += count } }
    }

    private struct Memory: CapturedFrame.Memory {
        let bytes: [UInt8]
        let held: Held

        func withBytes<Result>(_ plane: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result {
            precondition(plane == 0)
            return try body(bytes.span.bytes)
        }

        func giveBack() { held.add(-1) }
    }
}

/// The bytes of a recorded camera's frames: its recorded ones in turn, or a pattern.
enum FixturePattern {
    static func bytes(of fixture: CameraFixture, _ layout: CaptureLayout, number: UInt32) -> [UInt8] {
        let recorded = (fixture.frames ?? []).filter {
            $0.format == layout.mode.format && $0.size == layout.mode.size
        }
        if !recorded.isEmpty { return recorded[Int(number) % recorded.count].data }
        let plane = layout.planes[0]
        guard plane.stride > 0 else {
            // Nothing that a decoder reads: a file without frames has only their times.
            return [0xff, 0xd8] + numberBytes(number) + [0xff, 0xd9]
        }
        // A ramp that moves by one step a frame; the first four bytes are the frame's number.
        let start = Int(number & 255)
        let row = (start..<(start + plane.stride)).map { UInt8(truncatingIfNeeded: $0) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(plane.bytes + plane.stride)
        while bytes.count < plane.bytes { bytes += row }
        bytes.removeLast(bytes.count - plane.bytes)
        bytes.replaceSubrange(0..<min(4, bytes.count), with: numberBytes(number).prefix(bytes.count))
        return bytes
    }

    private static func numberBytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
