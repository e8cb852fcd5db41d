import GStreamerKit
import MediaGraph
import Synchronization

/// A network camera node that goes on while its camera is away.
struct KeptNetworkCamera: HeadedNode {
    let head: SourceHead?
    private let device: NetworkCameraDevice

    init(_ instance: NodeInstance) {
        let ports = ["video", "audio"].filter { instance.plan.formats[$0] != nil }
        device = NetworkCameraDevice(instance, ports)
        head = SourceHead(
            instance, device, ports.map { Self.output($0, of: instance) },
            withoutDevice: instance.text("away") == "end" ? .ends : .goesOn,
            limits: Self.limits(hasAudio: ports.contains("audio")))
        for port in ports {
            // Usually the jitter buffer would answer.
            instance.element("\(port)-source").source.answerLatencyQueries(
                seconds: Double(instance.integer("latency")) / 1000, isLive: true)
        }
    }

    private static func output(_ port: String, of instance: NodeInstance) -> SourceHead.Output {
        let element = "\(port)-source"
        guard port == "video" else {
            let format = instance.plan.formats[port]
            let silence = format.flatMap(EncodedSilence.init).map(StandIn.Silence.encoded) ?? .unknown
            return .init(port: port, element: element, standIn: .silence(silence))
        }
        return .init(
            port: port, element: element, standIn: StandIn(videoOf: instance), capacity: RTSPNode.capacity)
    }

    /// A camera sends continuously, but TCP holds its packets back for a moment.
    private static func limits(hasAudio: Bool) -> SourceSupervisor.Limits {
        var limits = SourceSupervisor.Limits()
        // The camera's description may state any rate.
        limits.longestPaced = 30
        // After a stand-in, the video goes on with the camera's next keyframe, which may take seconds.
        (limits.quiet, limits.silent, limits.pause) = (1, 5, 5)
        limits.firstStandIn = 4
        // Silence has no gaps.
        limits.fill = hasAudio ? 0.1 : 1
        (limits.poll, limits.longestBackoff) = (1, 30)
        limits.chance = .random(in: 0...1)
        return limits
    }

    var stalled: MediaError? { device.silent }
}

/// The camera of a node, described and opened again after each loss.
private final class NetworkCameraDevice: SourceDevice {
    private struct State {
        /// In seconds; nil for a live stream.
        var length: Double?
        /// The times of the first and the last frame.
        var first: MediaTime?
        var last: MediaTime?
        var ended = 0
        /// Of the video.
        var pace: PaceMeter?
    }

    /// How long to wait for a response, in seconds.
    private static let responseLimit = 4.0
    /// A stream of known length that ends so much earlier was cut off.
    private static let longestLack = 2.0
    /// After a wrong password: many cameras lock out clients that try it again and again.
    private static let unauthorizedPause = 300.0
    /// Frames per second of a camera that does not state them.
    private static let usualRate = 15.0

    private let request: NodeRequest
    private let address: RTSPAddress
    private let wishes: RTSPWishes
    private let ports: [String]
    private let prefix: String
    private let clock: PipelineClock
    private let notice: @Sendable (String) -> Void
    private let state = Mutex(State())
    private let opened = OpenChain()
    private let cancellation = RTSPProbe.Cancellation()

    init(_ instance: NodeInstance, _ ports: [String]) {
        request = NodeRequest(
            instance.node, RTSPNode.kind, usedOutputs: Set(ports), environment: SystemEnvironment())
        guard let address = RTSPAddress(instance.text("url")) else { preconditionFailure("a planned address") }
        self.address = address
        self.ports = ports
        wishes = RTSPWishes(instance.plan.formats)
        prefix = instance.prefix
        clock = instance.pipeline.clock
        notice = { [reporter = instance.reporter, name = instance.name] in reporter.warn(name, $0) }
    }

    func name(of candidate: Int) -> String { address.url }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        let camera = try describe()
        let (plan, lines) = try RTSPNode.planCamera(camera, at: address, request, wishes)
        var device = DevicePlan(name: address.url, wish: "")
        device.take(plan)
        device.outputs = ports.compactMap { plan.outputs[$0]?.element }
        let following = SourceOutput(
            deliver: { [weak self, isPaced = ports.first == "video"] buffer, time, track in
                let pace = self?.note(time, isPaced: isPaced && track == 0)
                let isTaken = output.deliver(buffer, time, track)
                if let pace { output.pace(pace) }
                return isTaken
            }, fail: output.fail)
        let chain = try DeviceChain(device, named: prefix, on: clock, for: following) { [address] failure, isFed in
            isFed
                ? RTSPFailure.lost(address.url, failure.message)
                : RTSPFailure.unreachable(address.url, failure.message)
        }
        try connect(chain, lines, to: output)
        opened.hold(chain)
        let rate = plan.formats["video"]?.framesPerSecond
        state.withLock { state in
            state = State(length: camera.compactMap(\.length).max())
            state.pace = PaceMeter(expecting: rate ?? Self.usualRate)
        }
        if let rate { output.pace(rate) }
        for note in plan.notes { notice(note) }
        try chain.play()
    }

    private func describe() throws(MediaError) -> NetworkCamera {
        do throws(RTSPProbe.Failure) {
            return try RTSPProbe.describe(
                address, verifyingCertificate: request.flag("verify-certificate"), seconds: Self.responseLimit,
                until: cancellation)
        } catch {
            throw RTSPFailure.described(error, at: address)
        }
    }

    /// Links the streams of the camera when they come, each to the output of its m-line.
    private func connect(
        _ chain: DeviceChain, _ lines: [String: Int], to output: SourceOutput
    ) throws(MediaError) {
        let source = chain.element("source")
        if let user = address.user { try source.set("user-id", .text(user)) }
        if let password = address.password { try source.set("user-pw", .text(password)) }
        let inputs = Dictionary(uniqueKeysWithValues: lines.map { ($1, chain.element($0).sink) })
        // Over TCP, a missing number comes no more.
        if request.text("transport") == "tcp" { source.closeGaps() }
        source.onStreamOffered { inputs[$0] != nil }
        source.onPadAdded { pad in
            guard let input = pad.streamLine.flatMap({ inputs[$0] }), !input.isLinked else { return }
            _ = pad.link(input)
        }
        for port in ports {
            chain.element("\(port)-format").source.onEndOfStream { [weak self] in self?.ended(output) }
        }
    }

    /// Returns the pace of the frames, if it has become another one.
    private func note(_ time: MediaTime, isPaced: Bool) -> Double? {
        state.withLock { state in
            state.first = state.first ?? time
            state.last = max(state.last ?? time, time)
            return isPaced ? state.pace?.frame(at: time.nanoseconds) : nil
        }
    }

    /// A stream has ended. One of known length has played to its end; a live one has none.
    private func ended(_ output: SourceOutput) {
        let isWhole = state.withLock { state -> Bool? in
            state.ended += 1
            guard state.ended == ports.count else { return nil }
            guard let length = state.length, let first = state.first, let last = state.last else { return false }
            return last.seconds(since: first) > length - Self.longestLack
        }
        guard let isWhole else { return }
        if isWhole { output.end() } else { output.fail(RTSPFailure.lost(address.url, "it ended the stream")) }
    }

    func close() { opened.close() }

    func interrupt() { cancellation.cancel() }

    /// A camera that still responds may have paused. The connection is alive, or rtspsrc would have failed.
    func isThere(_ candidate: Int) -> Bool { true }

    func isAbsence(_ error: MediaError) -> Bool { RTSPNode.isAway(error) }

    func pause(after error: MediaError) -> Double {
        error.code == MediaError.Code.rtspUnauthorized ? Self.unauthorizedPause : 0
    }

    /// The camera's reports shift one stream against the other, by 3 s at most.
    var mostAhead: Double { 3 }

    var silent: MediaError {
        RTSPFailure.unreachable(
            address.url, "it responded but sent nothing for \(SourceSupervisor.Limits().firstFrame.short) s")
    }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        switch cause {
        case .silent where state.withLock({ $0.first == nil }), .unresponsive: silent
        default: RTSPFailure.lost(address.url, "nothing came for 5 s")
        }
    }
}
