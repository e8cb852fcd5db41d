import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// The head of a source whose device may come and go: an `appsrc` that is always there. It passes the device's frames on
/// without a copy, and while the device is away, a stand-in. A `SourceSupervisor` decides which.
///
/// H.264 of the device passes unchanged, and its last keyframe stands in (`KeyframeRepeater`). The stand-in then goes on up
/// to the device's next keyframe.
///
/// Devices open and close on a queue of their own. A driver that hangs there blocks nothing else.
final class SourceHead: Sendable {
    /// The frames that stand in for those of the device.
    enum StandIn: Sendable {
        /// The last frame, of H.264 the last keyframe; the slate before the first one.
        case freeze(slate: Slate)
        case slate(Slate)
        /// Silence, in the raw format of audio between nodes.
        case silence

        fileprivate var slate: Slate? {
            switch self {
            case .freeze(let slate), .slate(let slate): slate
            case .silence: nil
            }
        }
    }

    private struct State {
        var supervisor: SourceSupervisor
        /// When the timer is due.
        var alarm: MediaTime?
        /// Counts the openings, so that frames of a closed device are recognized.
        var opening = 0
        /// The timestamp of the last frame, or the end of the last audio, in nanoseconds of the pipeline's time.
        var lastTime: UInt64?
        /// The last frame of the device. Not kept of H.264.
        var last: MediaBuffer?
        /// Nil for other media than H.264.
        var repeater: KeyframeRepeater?
        /// When the device was last asked for a keyframe.
        var askedAt: MediaTime?
        var isReady = false
        var isFinished = false
        /// That of the last event, if it has not been resolved since.
        var absence: MediaError?
        /// Whether the device has delivered, or has been reported as away. A stand-in may show before.
        var isDecided = false
        var waiting: [@Sendable () -> Void] = []
        /// Frames that stood in for those of the device.
        var standIns = 0
    }

    /// Frames that follow a stand-in of the same time are moved by so much.
    private static let step: UInt64 = 1_000_000
    /// Nanoseconds of one sample, and bytes of it for both channels.
    private static let (sampleTime, sampleBytes): (UInt64, Int) = (1_000_000_000 / 48_000, 4)
    /// Audio may begin so much after the end of the audio before it. A longer gap after a stand-in is filled.
    private static let gap: UInt64 = 5_000_000
    /// The longest silence that is pushed at once.
    private static let longestSilence: UInt64 = 1_000_000_000
    private static let shortestAlarm = 0.001
    /// The shortest time between two requests for a keyframe, in seconds.
    private static let askInterval = 0.5
    /// How long `finish` waits for a device to close, in seconds.
    private static let closingLimit = 2.0

    private let name: String
    private let reporter: Reporter
    private let pipeline: WeakBox<Pipeline>
    private let source: PushSource
    private let device: any SourceDevice
    private let standIn: StandIn
    private let state: Mutex<State>
    /// Timers.
    private let queue = DispatchQueue(label: "media.source")
    /// Events, whose receiver may block.
    private let events = DispatchQueue(label: "media.source.events")
    /// Opening and closing.
    private let devices = DispatchQueue(label: "media.device")
    private let timer = Mutex<Timeout?>(nil)

    init(
        _ instance: NodeInstance, _ device: any SourceDevice, candidates: Int = 1, standIn: StandIn,
        limits: SourceSupervisor.Limits
    ) {
        (name, reporter) = (instance.name, instance.reporter)
        pipeline = WeakBox(instance.pipeline)
        source = PushSource(instance.element("source"))
        self.device = device
        self.standIn = standIn
        var state = State(supervisor: SourceSupervisor(candidates: candidates, limits: limits))
        let isH264 = instance.plan.formats.values.contains { $0.encoding == "h264" }
        if isH264 {
            state.repeater = KeyframeRepeater()
            state.repeater?.interrupt()
        }
        self.state = Mutex(state)
        reporter.await(name)
        guard isH264 else { return }
        source.element.source.onUpstreamEvent { [weak self] event in
            if let self, case .forceKeyUnit = event { self.state.withLock { self.askForKeyframe(&$0) } }
            return .pass
        }
    }

    /// Adds the head's element to a plan, as `source`. It gives the promised format whether the device is there or not.
    static func plan(_ plan: inout NodePlan, _ format: MediaFormat, caps: String, latency: Double) {
        let limits =
            switch format.kind {
            case .rawAudio: QueuePlan.Limits.rawSound
            case .encodedVideo where format.encoding == "h264": PushQueue.encodedLimits
            default: QueuePlan.Limits.rawPictures
            }
        PushQueue.plan(&plan, caps: caps, limits, holding: format)
        plan.elements[plan.elements.count - 1].properties["min-latency"] = .integer(Int(latency * 1e9))
    }

    // MARK: Running

    /// Opens the device when the pipeline plays.
    func prepare() {
        // A call that is on its way may come after `finish`.
        source.whenFirstWanted { [weak self] in
            self?.state.withLock { state in if !state.isFinished { self?.handle(.started, &state) } }
        }
    }

    /// Closes the device. Returns when that is done, or after a limit if its driver hangs.
    func finish() {
        source.forgetFirstWanted()
        state.withLock { state in
            state.isFinished = true
            handle(.stopped, &state)
        }
        timer.withLock { $0 = nil }
        let isClosed = DispatchSemaphore(value: 0)
        devices.async { isClosed.signal() }
        if isClosed.wait(timeout: .now() + Self.closingLimit) == .timedOut {
            reporter.warn(
                name, "\(device.name(of: 0)) does not close, because its driver is not responding. The rest continues.")
        }
        standIn.slate?.end()
        let last = state.withLock { state in
            defer { state.last = nil }
            return state.last
        }
        withExtendedLifetime(last) {}
    }

    /// A monitor has noticed that a candidate is there.
    func appeared(_ candidate: Int = 0) { handle(.appeared(candidate)) }

    /// Why stand-ins take the place of the device's media, as of the last event.
    var absence: MediaError? { state.withLock { $0.absence } }

    func whenDecided(_ body: @escaping @Sendable () -> Void) {
        let isDecided = state.withLock { state in
            if !state.isDecided { state.waiting.append(body) }
            return state.isDecided
        }
        if isDecided { body() }
    }

    var status: SourceStatus {
        let (supervisor, standIns) = state.withLock { ($0.supervisor, $0.standIns) }
        var status = SourceStatus(
            state: SourceStatus.State(supervisor), device: device.name(of: supervisor.candidate))
        status.cause = supervisor.cause.map { error($0, supervisor.candidate).message }
        (status.losses, status.standIns) = (supervisor.losses, standIns)
        return status
    }

    // MARK: Inputs

    /// Handles an input of the device that was opened last.
    func handle(_ input: SourceSupervisor.Input, of opening: Int) {
        state.withLock { state in if state.opening == opening { handle(input, &state) } }
    }

    private func handle(_ input: SourceSupervisor.Input) {
        state.withLock { handle(input, &$0) }
    }

    /// Passes a frame on. Called on a thread of the device.
    func deliver(_ buffer: MediaBuffer, at time: MediaTime, of opening: Int) {
        // The former frame is released after the lock: that may call the driver.
        let former = state.withLock { state -> MediaBuffer? in
            guard state.opening == opening, state.supervisor.phase != .stopped, state.supervisor.phase != .lost else {
                return nil
            }
            if state.repeater != nil {
                pass(h264: buffer, at: time, &state)
                return nil
            }
            let isAfterStandIn = state.supervisor.isFilling
            handle(.frame, &state)
            if case .silence = standIn {
                pass(sound: buffer, at: time, isAfterStandIn: isAfterStandIn, &state)
                return nil
            }
            if isAfterStandIn { standIn.slate?.hide() }
            guard let timestamp = timestamp(min(time, GStreamer.now), &state) else { return nil }
            if source.push(buffer, timestamp: timestamp) { pushed(at: timestamp, &state) }
            defer { state.last = buffer }
            return state.last
        }
        withExtendedLifetime(former) {}
    }

    /// Passes a frame of H.264 on, unless receivers lack a frame on which it depends.
    private func pass(h264 buffer: MediaBuffer, at time: MediaTime, _ state: inout State) {
        guard let timestamp = timestamp(min(time, GStreamer.now), &state) else { return }
        let isFull = isFull
        if isFull { state.repeater?.interrupt() }
        let frame = buffer.bytes
        let passing = isFull ? .dropped : state.repeater?.pass(frame) ?? .unchanged
        // A stand-in goes on until it can end.
        if passing != .dropped || !state.supervisor.isFilling { handle(.frame, &state) }
        let isPushed: Bool
        switch passing {
        case .dropped: return askForKeyframe(&state)
        case .unchanged:
            isPushed = source.push(buffer, timestamp: timestamp, isKeyframe: VideoCodec.h264.isKeyframe(frame))
        case .changed(let bytes): isPushed = source.push(bytes.span.bytes, timestamp: timestamp)
        }
        standIn.slate?.hide()
        if isPushed { pushed(at: timestamp, &state) }
    }

    /// Whether the queue of encoded frames is full.
    private var isFull: Bool { source.waiting >= PushQueue.encodedLimits.frames ?? .max }

    private func askForKeyframe(_ state: inout State) {
        let now = GStreamer.now
        if let last = state.askedAt, now.seconds(since: last) < Self.askInterval { return }
        state.askedAt = now
        device.requestKeyframe()
    }

    /// Passes audio on that continues where the former audio ended.
    private func pass(sound buffer: MediaBuffer, at time: MediaTime, isAfterStandIn: Bool, _ state: inout State) {
        guard let start = runningTime(time) else { return }
        let length = UInt64(buffer.byteCount / Self.sampleBytes) * Self.sampleTime
        if isAfterStandIn, let last = state.lastTime, start > last + Self.gap { play(silenceUntil: start, &state) }
        // The stand-in has taken this time already.
        if let last = state.lastTime, start + Self.gap < last { return }
        if source.push(buffer, timestamp: start) { pushed(at: start + length, &state) }
    }

    /// Pushes silence from the end of the last audio on.
    private func play(silenceUntil end: UInt64, _ state: inout State) {
        let first = state.lastTime ?? end - min(end, UInt64(state.supervisor.limits.fill * 1e9))
        guard end > first else { return }
        // After a machine stood still, nobody hears what was missed.
        let start = max(first, end - min(end, Self.longestSilence))
        let samples = Int((end - start) / Self.sampleTime)
        guard (try? source.push(samples: samples * 2, timestamp: start) { _ in }) == true else { return }
        state.standIns += 1
        pushed(at: start + UInt64(samples) * Self.sampleTime, &state)
    }

    /// A time of the pipeline. Nil while it does not play.
    private func runningTime(_ time: MediaTime) -> UInt64? {
        pipeline.value?.runningTime(at: time.nanoseconds)
    }

    /// The timestamp for a frame: later than that of the one before. Nil while the pipeline does not play.
    private func timestamp(_ time: MediaTime, _ state: inout State) -> UInt64? {
        guard let running = runningTime(time) else { return nil }
        return state.lastTime.map { max(running, $0 + Self.step) } ?? running
    }

    private func pushed(at timestamp: UInt64, _ state: inout State) {
        state.lastTime = timestamp
        if !state.isReady {
            state.isReady = true
            reporter.isReady(name)
        }
    }

    // MARK: Actions

    /// Performs the supervisor's actions. None of them blocks, so they keep their order under the lock.
    private func handle(_ input: SourceSupervisor.Input, _ state: inout State) {
        let actions = state.supervisor.handle(input, at: GStreamer.now)
        for action in actions { perform(action, &state) }
        decide(&state)
        // The time of a frame only moves the deadline back.
        if case .frame = input, actions.isEmpty, state.alarm != nil { return }
        setAlarm(&state)
    }

    private func decide(_ state: inout State) {
        guard !state.isDecided, state.absence != nil || state.supervisor.phase == .streaming else { return }
        state.isDecided = true
        for body in state.waiting { events.async(execute: body) }
        state.waiting = []
    }

    private func perform(_ action: SourceSupervisor.Action, _ state: inout State) {
        switch action {
        case .open(let candidate):
            state.opening += 1
            let opening = state.opening
            devices.async { [weak self] in self?.open(candidate, opening) }
        case .close:
            // The frames of a device that closes hold its memory.
            state.last = state.last?.copied
            devices.async { [weak self, device] in
                device.close()
                self?.handle(.closed)
            }
        case .look(let candidate):
            devices.async { [weak self] in
                guard let self else { return }
                handle(device.isThere(candidate) ? .appeared(candidate) : .disappeared(candidate))
            }
        case .fill: fill(&state)
        case .requestKeyframe: if state.repeater == nil { source.requestKeyframe() }
        case .report(let event): report(event, &state)
        }
    }

    private func open(_ candidate: Int, _ opening: Int) {
        do throws(MediaError) {
            let output = SourceOutput(
                deliver: { [weak self] buffer, time in self?.deliver(buffer, at: time, of: opening) },
                fail: { [weak self] error in self?.handle(.failed(.failed(error)), of: opening) },
                pace: { [weak self] rate in self?.handle(.paced(rate), of: opening) })
            try device.open(candidate, for: output)
            handle(.opened, of: opening)
        } catch {
            device.close()
            handle(.openFailed(device.isAbsence(error) ? .absent(error) : .failed(error)), of: opening)
        }
    }

    private func fill(_ state: inout State) {
        guard let timestamp = timestamp(GStreamer.now, &state) else { return }
        let slate: MediaBuffer?
        switch standIn {
        case .freeze(let frame):
            slate = state.last == nil && state.repeater?.hasKeyframe != true ? shown(frame) : nil
        case .slate(let frame): slate = shown(frame)
        case .silence: return play(silenceUntil: timestamp, &state)
        }
        let isPushed: Bool
        if state.repeater != nil {
            guard !isFull, let frame = keyframe(orSlate: slate, &state) else { return }
            isPushed = source.push(frame.span.bytes, timestamp: timestamp)
        } else {
            guard let frame = slate ?? state.last else { return }
            isPushed = source.repeat(frame, timestamp: timestamp)
        }
        guard isPushed else { return }
        state.standIns += 1
        pushed(at: timestamp, &state)
    }

    /// The frame that stands in for one of H.264. Nil before the first keyframe and without a slate.
    private func keyframe(orSlate slate: MediaBuffer?, _ state: inout State) -> [UInt8]? {
        if let slate, state.repeater?.hasSlate == false { _ = state.repeater?.show(slate: slate.bytes) }
        return state.repeater?.standIn()
    }

    private func shown(_ slate: Slate) -> MediaBuffer? {
        slate.show()
        return slate.frame
    }

    private func report(_ event: SourceSupervisor.Event, _ state: inout State) {
        let candidate = state.supervisor.candidate
        func error(_ cause: SourceSupervisor.Cause) -> MediaError { self.error(cause, candidate).about(name) }
        let reported: MediaEvent
        switch event {
        case .waiting(let cause): reported = .deviceWaiting(node: name, cause: error(cause))
        case .lost(let cause): reported = .deviceLost(node: name, cause: error(cause))
        case .returned: reported = .deviceReturned(node: name)
        case .failedOver(let place): reported = .deviceFailedOver(node: name, device: device.name(of: place))
        }
        state.absence = reported.source?.absence
        events.async { [reporter] in reporter.device(reported) }
    }

    private func error(_ cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        switch cause {
        case .absent(let error), .failed(let error): error
        case .silent, .unresponsive, .gone: device.error(for: cause, candidate)
        }
    }

    // MARK: Time

    private func setAlarm(_ state: inout State) {
        guard let due = state.supervisor.deadline else { return }
        if let alarm = state.alarm, alarm <= due { return }
        state.alarm = due
        // Not at once: the thread of a device that floods it must not starve the others.
        let seconds = max(Self.shortestAlarm, due.seconds(since: GStreamer.now))
        timer.withLock { timer in
            if let timer { return timer.set(.now() + seconds) }
            timer = Timeout(at: .now() + seconds, on: queue) { [weak self] _ in self?.alarm() }
        }
    }

    private func alarm() {
        state.withLock { state in
            state.alarm = nil
            handle(.timePassed, &state)
        }
    }
}

extension SourceStatus.State {
    fileprivate init(_ supervisor: SourceSupervisor) {
        self =
            switch supervisor.phase {
            case .stopped: .stopped
            case .waiting: .waiting
            case .opening: .opening
            case .streaming: supervisor.candidate > 0 ? .failedOver : .streaming
            case .silent: .silent
            case .lost: .lost
            case .backingOff: .backingOff
            }
    }
}
