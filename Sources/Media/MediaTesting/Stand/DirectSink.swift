import MediaAuthoring
import Synchronization

/// Records the output of a capturer with its arrival times.
final class DirectSink: CaptureSink, UnitRecord {
    private struct State {
        var format: MediaFormat
        var units: [MediaUnit] = []
        var due: MediaTime?
        var lastTaken: MediaTime?
        /// Rows that the first frame did not change.
        var untouched: Set<Picture.Row> = []
        var pictures = 0
        var gate = KeyframeGate()
    }

    /// Only the beginning of a long run is recorded.
    private static let capacity = 20_000
    /// The interval of a slow consumer, in seconds: it accepts at most each third frame.
    private static func slowness(_ format: MediaFormat) -> Double { max(0.2, 2.5 / (format.framesPerSecond ?? 100)) }

    private let consumer: CaptureConsumer
    private let clock: any StandClock
    private let state: Mutex<State>

    init(_ format: MediaFormat, _ consumer: CaptureConsumer, _ clock: any StandClock) {
        (self.consumer, self.clock) = (consumer, clock)
        state = Mutex(State(format: format))
    }

    var units: [MediaUnit] { state.withLock { $0.units } }
    var now: MediaTime { clock.now }

    func wait(until time: MediaTime) async throws {
        state.withLock { $0.due = time }
        try await clock.wait(until: time)
    }

    func takePicture(
        _ format: PictureFormat, at time: MediaTime, _ draw: (inout MutableVideoFrame) throws -> Void
    ) throws -> Bool {
        let arrival = clock.now
        try refuse()
        let number = state.withLock { state in
            defer { state.pictures += 1 }
            return state.pictures
        }
        let filling: UInt8 = number.isMultiple(of: 2) ? 0x5b : 0xa7
        let memory = PictureMemory(
            Picture(format.pixels, FrameShape(width: format.width, height: format.height)) { _, length in
                [[UInt8](repeating: filling, count: length)]
            })
        var picture = MutableVideoFrame(
            width: format.width, height: format.height, captureTime: time, access: memory.withPlane)
        try draw(&picture)
        return take(format.media, time, arrival) { unit, state in
            // Unchanged contents can look like a drawing once, but not with two different fillings.
            let untouched = number < 2 ? memory.picture.rows(filledWith: filling) : []
            if number == 0 { state.untouched = untouched }
            if number == 1, let row = state.untouched.intersection(untouched).min() {
                unit.fault = "row \(row.number) of plane \(row.plane) is not drawn"
            }
        }
    }

    func takeSound(
        moments: Int, at time: MediaTime, _ fill: (inout MutableSpan<Int16>) throws -> Void
    ) throws -> Bool {
        let arrival = clock.now
        try refuse()
        var samples = [Int16](repeating: 0, count: moments * 2)
        var span = samples.mutableSpan
        try fill(&span)
        return take(.rawAudio, time, arrival) { unit, _ in unit.duration = Double(moments) / 48_000 }
    }

    func takeEncoded(_ bytes: RawSpan, at time: MediaTime, isKeyframe: Bool) throws -> Bool {
        let arrival = clock.now
        try refuse()
        let format = state.withLock { $0.format }
        let fault = EncodedHeader.fault(of: bytes, as: format, isKeyframe: isKeyframe)
        return take(format, time, arrival, isKeyframe: isKeyframe) { unit, _ in unit.fault = fault }
    }

    func change(to format: MediaFormat) throws {
        try format.checkForCapture()
        if consumer == .rigid {
            throw MediaError(
                code: MediaError.Code.formatClash,
                message: "The nodes downstream do not accept \(format). Continue to send the previous format.")
        }
        state.withLock { state in
            state.format = format
            state.pictures = 0
        }
    }

    func takeKeyframeRequest() -> Bool { state.withLock { $0.gate.takeRequest() } }

    private func refuse() throws {
        guard consumer == .failing else { return }
        // Records the attempt.
        state.withLock { state in
            if state.units.count < Self.capacity {
                state.units.append(MediaUnit(format: state.format, time: clock.now, arrival: clock.now))
            }
        }
        throw MediaError(
            code: MediaError.Code.elementFailed,
            message: "The stand refuses all frames as a test. Let this error leave capture().")
    }

    private func take(
        _ format: MediaFormat, _ time: MediaTime, _ arrival: MediaTime, isKeyframe: Bool? = nil,
        _ judge: (inout MediaUnit, inout State) -> Void
    ) -> Bool {
        state.withLock { state in
            var unit = MediaUnit(format: format, time: time, arrival: arrival)
            unit.isOnTheClock = state.due == time
            let isFull =
                consumer == .slow
                && state.lastTaken.map { arrival.seconds(since: $0) < Self.slowness(format) } ?? false
            unit.isKeyframe = isKeyframe
            unit.isTaken =
                isKeyframe.map { state.gate.takes(isKeyframe: $0, isFull: isFull, at: arrival) } ?? !isFull
            if unit.isTaken { state.lastTaken = arrival }
            judge(&unit, &state)
            if state.units.count < Self.capacity { state.units.append(unit) }
            return unit.isTaken
        }
    }
}
