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
///
/// A loudspeaker node has a head without outputs: its device takes media instead of delivering it.
final class SourceHead: Sendable {
    private struct State {
        var supervisor: SourceSupervisor
        /// When the timer is due.
        var alarm: MediaTime?
        /// Counts the openings, so that frames of a closed device are recognized.
        var opening = 0
        /// The first one decides whether the device delivers. None for a loudspeaker.
        var tracks: [SourceTrack]
        var isReady = false
        var isFinished = false
        /// Whether the device announced a rest.
        var isResting = false
        /// That of the last event, if it has not been resolved since.
        var absence: MediaError?
        /// Whether the device has delivered, or has been reported as away. A stand-in may show before.
        var isDecided = false
        var waiting: [@Sendable () -> Void] = []
    }

    private static let shortestAlarm = 0.001

    private let name: String
    private let reporter: Reporter
    private let pipeline: WeakBox<Pipeline>
    private let device: any SourceDevice
    private let withoutDevice: WithoutDevice
    private let state: Mutex<State>
    /// Timers.
    private let queue = DispatchQueue(label: "media.source")
    /// Events, whose receiver may block.
    private let events = DispatchQueue(label: "media.source.events")
    /// Opening and closing.
    private let devices = DispatchQueue(label: "media.device")
    private let timer = Mutex<Timeout?>(nil)

    /// The node's behaviour while its device is away.
    enum WithoutDevice {
        /// Shows stand-ins.
        case goesOn
        /// Fails when no candidate delivers.
        case ends
        /// Waits for the device, and fails when it is lost.
        case endsWithLoss
    }

    /// An output of the node, with the element that `plan` added for it.
    struct Output {
        var port: String
        var element = "source"
        var standIn: StandIn
        /// How many encoded frames may wait, and bytes of them.
        var capacity = SourceTrack.Capacity()

        /// The output `video`, with the stand-in of the setting `away`.
        static func video(of instance: NodeInstance) -> Output {
            Output(port: "video", standIn: StandIn(videoOf: instance))
        }
    }

    /// - Parameters:
    ///   - outputs: the first one decides whether the device delivers. None for a loudspeaker, which opens at once.
    ///   - isAwaited: whether the graph's start waits for the first frame or stand-in.
    init(
        _ instance: NodeInstance, _ device: any SourceDevice, candidates: Int = 1, _ outputs: [Output],
        withoutDevice: WithoutDevice = .goesOn, isAwaited: Bool = true, limits: SourceSupervisor.Limits
    ) {
        (name, reporter) = (instance.name, instance.reporter)
        pipeline = WeakBox(instance.pipeline)
        (self.device, self.withoutDevice) = (device, withoutDevice)
        let tracks = outputs.map {
            SourceTrack(
                PushSource(instance.element($0.element)), instance.plan.formats[$0.port], $0.standIn, $0.capacity)
        }
        let supervisor = SourceSupervisor(
            candidates: candidates, limits: limits, triesAllFirst: withoutDevice == .ends)
        state = Mutex(State(supervisor: supervisor, tracks: tracks))
        if isAwaited { reporter.await(name) }
        for (index, track) in tracks.enumerated() where track.repeater != nil {
            track.source.element.source.onUpstreamEvent { [weak self] event in
                if let self, case .forceKeyUnit = event { self.state.withLock { self.askForKeyframe(index, &$0) } }
                return .pass
            }
        }
    }

    /// Adds the head's element to a plan. It gives the promised format whether the device is there or not.
    static func plan(
        _ plan: inout NodePlan, _ format: MediaFormat, caps: String, latency: Double, as element: String = "source",
        capacity: SourceTrack.Capacity = .init()
    ) {
        let limits: QueuePlan.Limits =
            switch format.kind {
            case .rawAudio: .rawSound
            case .encodedAudio: QueuePlan.Limits(seconds: 1, rule: .dropOldest)
            default: Encoding.named(format.encoding)?.repeater == nil ? .rawPictures : capacity.limits
            }
        PushQueue.plan(&plan, caps: caps, limits, holding: format, as: element)
        guard latency > 0 else { return }
        plan.elements[plan.elements.count - 1].properties["min-latency"] = .integer(Int(latency * 1e9))
    }

    // MARK: Running

    /// Opens the device when the pipeline plays.
    func prepare() {
        // A call that is on its way may come after `finish`.
        guard let first = state.withLock({ $0.tracks.first?.source }) else { return handle(.started) }
        first.whenFirstWanted { [weak self] in
            self?.state.withLock { state in if !state.isFinished { self?.handle(.started, &state) } }
        }
    }

    /// Closes the device. Returns when that is done, or after a limit if its driver hangs.
    func finish() {
        let tracks = state.withLock { state in
            state.isFinished = true
            handle(.stopped, &state)
            return state.tracks
        }
        tracks.first?.source.forgetFirstWanted()
        device.interrupt()
        timer.withLock { $0 = nil }
        let isClosed = DispatchSemaphore(value: 0)
        devices.async { isClosed.signal() }
        if isClosed.wait(timeout: .now() + device.closingLimit) == .timedOut {
            reporter.warn(name, "\(device.closingProblem) The rest continues.")
        }
        for track in tracks { track.standIn.slate?.end() }
        let last = state.withLock { state in state.tracks.indices.map { state.tracks[$0].forget() } }
        withExtendedLifetime((last, tracks)) {}
    }

    /// A monitor has noticed that the device is there.
    func appeared() { handle(.appeared) }

    /// Why stand-ins take the place of the device's media, as of the last event.
    var absence: MediaError? { state.withLock { $0.absence } }

    /// Whether the frame of a time stands in for one of the device, of the output that decides whether it delivers.
    func isStandIn(at time: MediaTime) -> Bool {
        guard let time = runningTime(time) else { return false }
        return state.withLock { $0.tracks.first?.isStandIn(at: time) ?? false }
    }

    func whenDecided(_ body: @escaping @Sendable () -> Void) {
        let isDecided = state.withLock { state in
            if !state.isDecided { state.waiting.append(body) }
            return state.isDecided
        }
        if isDecided { body() }
    }

    var status: SourceStatus {
        let (supervisor, standIns) = state.withLock { ($0.supervisor, $0.tracks.map(\.standIns).reduce(0, +)) }
        var status = SourceStatus(
            state: SourceStatus.State(supervisor), device: device.name(of: supervisor.candidate))
        status.cause = supervisor.cause.map { error($0, supervisor.blamed).message }
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
    ///
    /// - Returns: whether the frame was passed on.
    func deliver(
        _ buffer: MediaBuffer, at time: MediaTime, of opening: Int, to track: Int = 0
    ) -> Bool {
        let passed = state.withLock { state -> SourceTrack.Passed? in
            guard state.opening == opening, state.supervisor.phase != .stopped, state.supervisor.phase != .lost,
                track < state.tracks.count
            else { return nil }
            return pass(buffer, at: time, to: track, &state)
        }
        withExtendedLifetime(passed?.former) {}
        return passed?.isPushed ?? false
    }

    private func pass(
        _ buffer: MediaBuffer, at time: MediaTime, to track: Int, _ state: inout State
    ) -> SourceTrack.Passed? {
        let isLead = track == 0
        // A stand-in of encoded video goes on until it can end.
        let isWhole = state.tracks[track].repeater == nil
        if isLead, isWhole { handle(.frame, &state) }
        guard let start = runningTime(min(time, GStreamer.now + .seconds(device.mostAhead))) else {
            // Frames that follow depend on this one.
            state.tracks[track].interrupt()
            if isLead, !isWhole { handle(.alive, &state) }
            return nil
        }
        let passed = state.tracks[track].pass(buffer, at: start)
        if isLead, !isWhole { handle(passed.isDropped ? .alive : .frame, &state) }
        if state.tracks.count > 1 { keepTogether(track, &state) }
        if passed.isDropped { askForKeyframe(track, &state) }
        if passed.isPushed, isLead { isReady(&state) }
        return passed
    }

    /// A track goes on while another one is silent, and the device is not lost.
    private func keepTogether(_ delivered: Int, _ state: inout State) {
        guard let now = runningTime(GStreamer.now) else { return }
        if delivered > 0 {
            state.tracks[delivered].hear(at: now)
            if state.supervisor.phase == .silent { handle(.alive, &state) }
        } else {
            for track in state.tracks.indices.dropFirst() { _ = state.tracks[track].keepUp(at: now) }
        }
    }

    private func askForKeyframe(_ track: Int, _ state: inout State) {
        if state.tracks[track].asks() { device.requestKeyframe() }
    }

    /// A time of the pipeline. Nil while it does not play.
    private func runningTime(_ time: MediaTime) -> UInt64? {
        pipeline.value?.runningTime(at: time.nanoseconds)
    }

    private func isReady(_ state: inout State) {
        guard !state.isReady else { return }
        state.isReady = true
        reporter.isReady(name)
    }

    /// The device has ended deliberately: so does the stream.
    func end(_ opening: Int? = nil) {
        let tracks = state.withLock { state -> [SourceTrack] in
            guard opening == nil || state.opening == opening, !state.isFinished, state.supervisor.phase != .stopped
            else { return [] }
            handle(.stopped, &state)
            isReady(&state)
            return state.tracks
        }
        for track in tracks { track.source.endOfStream() }
    }

    private func rest(_ rests: Bool, _ opening: Int) {
        state.withLock { state in
            guard state.opening == opening else { return }
            state.isResting = rests
            if rests { for track in state.tracks.indices { state.tracks[track].release() } }
            handle(.rests(rests), &state)
        }
    }

    private func interrupt() {
        state.withLock { state in for track in state.tracks.indices { state.tracks[track].interrupt() } }
    }

    // MARK: Actions

    /// Performs the supervisor's actions. None of them blocks, so they keep their order under the lock.
    private func handle(_ input: SourceSupervisor.Input, _ state: inout State) {
        let isStreaming = state.supervisor.phase == .streaming
        let actions = state.supervisor.handle(input, at: GStreamer.now)
        for action in actions { perform(action, &state) }
        decide(&state)
        // The time of a further frame only moves the deadline back.
        if case .frame = input, isStreaming, actions.isEmpty, state.alarm != nil { return }
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
            state.isResting = false
            for track in state.tracks.indices { state.tracks[track].open() }
            let opening = state.opening
            devices.async { [weak self] in self?.open(candidate, opening) }
        case .close:
            for track in state.tracks.indices { state.tracks[track].release() }
            devices.async { [weak self, device] in
                device.close()
                self?.handle(.closed)
            }
        case .look(let candidate):
            devices.async { [weak self] in
                guard let self else { return }
                handle(.looked(candidate, isThere: device.isThere(candidate)))
            }
        case .fill: fill(&state)
        case .requestKeyframe:
            if let track = state.tracks.first, track.repeater == nil { track.source.requestKeyframe() }
        case .report(let event): report(event, &state)
        }
    }

    private func open(_ candidate: Int, _ opening: Int) {
        do throws(MediaError) {
            let output = SourceOutput(
                deliver: { [weak self] buffer, time, track in
                    self?.deliver(buffer, at: time, of: opening, to: track) ?? false
                },
                fail: { [weak self] error in self?.handle(.failed(.failed(error)), of: opening) },
                pace: { [weak self] rate in self?.handle(.paced(rate), of: opening) },
                end: { [weak self] in self?.end(opening) },
                rests: { [weak self] in self?.rest($0, opening) },
                takes: { [weak self] in self?.handle(.frame, of: opening) },
                interrupt: { [weak self] in self?.interrupt() })
            try device.open(candidate, for: output)
            handle(.opened, of: opening)
        } catch {
            device.close()
            let cause = device.isAbsence(error) ? SourceSupervisor.Cause.absent(error) : .failed(error)
            handle(.openFailed(cause, pause: device.pause(after: error)), of: opening)
        }
    }

    private func fill(_ state: inout State) {
        guard withoutDevice == .goesOn, let now = runningTime(GStreamer.now) else { return }
        let interval = state.supervisor.limits.fill
        for track in state.tracks.indices {
            if state.tracks[track].fill(at: now, isLead: track == 0, interval: interval), track == 0 {
                isReady(&state)
            }
        }
    }

    private func report(_ event: SourceSupervisor.Event, _ state: inout State) {
        let candidate = state.supervisor.candidate
        func error(_ cause: SourceSupervisor.Cause) -> MediaError { self.error(cause, candidate).about(name) }
        if withoutDevice != .goesOn {
            switch event {
            case .waiting where withoutDevice == .endsWithLoss: return
            case .waiting(let cause), .lost(let cause):
                // The wished device's cause says most.
                let (latest, blamed) = (state.supervisor.cause ?? cause, state.supervisor.blamed)
                let error = self.error(latest, blamed).about(name)
                // Nothing follows.
                handle(.stopped, &state)
                return events.async { [reporter, name] in reporter.fail(error, name) }
            case .returned where withoutDevice == .endsWithLoss, .failedOver where withoutDevice == .endsWithLoss:
                return
            case .returned, .failedOver: break
            }
        }
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
        cause.error ?? device.error(for: cause, candidate)
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
            // Nothing is expected of a device whose frames nobody takes, or for which there are none.
            let rests = state.isResting || pipeline.value?.isPaused == true || device.isIdle
            if rests != state.supervisor.isResting { handle(.rests(rests), &state) }
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
