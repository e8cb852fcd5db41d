internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol

/// An event of the audio session, for its delegate.
enum AudioSessionEvent: Sendable, Equatable {
    case began(interruption: Bool)
    case route(AudioRouteChangeReason, AudioRoute, previous: AudioRoute)
    case serverTerminated
    case serverReset
    case canPlayOrRecord(Bool)
    case started
    case stopped
    case willSetActive(Bool)
    case didSetActive(Bool)
    case failedToSetActive(Bool, RoomError)

    func tell(_ delegate: any AudioSessionDelegate) {
        switch self {
        case .began(interruption: true): delegate.didBeginInterruption()
        case .began(interruption: false): delegate.didEndInterruption(shouldResumeSession: true)
        case .route(let reason, let current, let previous):
            delegate.didChangeRoute(reason: reason, currentRoute: current, previousRoute: previous)
        case .serverTerminated: delegate.mediaServerTerminated()
        case .serverReset: delegate.mediaServerReset()
        case .canPlayOrRecord(let can): delegate.didChangeCanPlayOrRecord(canPlayOrRecord: can)
        case .started: delegate.didStartPlayOrRecord()
        case .stopped: delegate.didStopPlayOrRecord()
        case .willSetActive(let active): delegate.willSetActive(active: active)
        case .didSetActive(let active): delegate.didSetActive(active: active)
        case .failedToSetActive(let active, let error):
            delegate.failedToSetActive(active: active, error: ConnectLiveError(error))
        }
    }
}

/// The state of the audio session, as a value. Each change returns the events that it brings.
struct AudioSessionState {
    enum Interruption {
        /// The sound server has silenced the rooms.
        case server
        case sleep
    }

    private(set) var configuration = AudioSessionConfiguration()
    private var route = AudioRoute()
    private var isActive = false
    private var isSounding = false
    private var interruptions: Set<Interruption> = []
    private var canPlayOrRecord = true
    /// Those of the sound system, as they were known last.
    private var devices: SoundDevices?
    private var isServerUp = true
    /// Whether the watch of the sound server has reported. From then on, it alone knows: an answer may come too late, and without the
    /// server, the sound system may still have the cards of ALSA.
    private var isServerWatched = false

    var isInterrupted: Bool { !interruptions.isEmpty }

    /// The application begins the session.
    ///
    /// - Parameters:
    ///   - answer: the devices of the sound system. Nil without one.
    ///   - isLate: whether the sound server has not answered in time. Then the known devices count.
    mutating func activate(
        _ configuration: AudioSessionConfiguration, _ answer: SoundDevices?, isLate: Bool = false
    ) -> [AudioSessionEvent] {
        let found = isLate && (isServerUp || !isServerWatched) ? devices : answer
        // With the former category and the present devices.
        if devices == nil { route = AudioRoute(found, for: self.configuration) }
        let (previous, isOther) = (route, configuration.category != self.configuration.category)
        self.configuration = configuration
        if !isServerWatched { isServerUp = found != nil }
        if let found { devices = found.withPorts(of: devices) }
        route = AudioRoute(devices, for: configuration)
        isActive = found != nil
        var events: [AudioSessionEvent] = [
            .willSetActive(true), isActive ? .didSetActive(true) : .failedToSetActive(true, absence),
        ]
        if isOther || route != previous { events.append(.route(.categoryChange, route, previous: previous)) }
        return events + checkWhetherItCan()
    }

    private var absence: RoomError {
        RoomError(
            MediaError(
                code: configuration.category.plays ? MediaError.Code.speakerAbsent : MediaError.Code.microphoneAbsent,
                message: "The audio session cannot begin: no sound system responds. Start a sound server, or plug in a "
                    + "sound card."))
    }

    /// The devices of the sound server have changed, or it has ended (nil).
    mutating func devicesChanged(_ found: SoundDevices?) -> [AudioSessionEvent] {
        isServerWatched = true
        guard let found else {
            guard isServerUp else { return [] }
            isServerUp = false
            return [.serverTerminated] + checkWhetherItCan()
        }
        var events: [AudioSessionEvent] = isServerUp ? [] : [.serverReset]
        let former = devices?.withPorts(of: found)
        let previous = AudioRoute(former, for: configuration)
        isServerUp = true
        devices = found
        route = AudioRoute(found, for: configuration)
        if route != previous {
            let reason = Self.reason(from: previous, former, to: route, found)
            events.append(.route(reason, route, previous: previous))
        }
        return events + checkWhetherItCan()
    }

    /// The loudspeaker's change counts more than the microphone's.
    private static func reason(
        from previous: AudioRoute, _ former: SoundDevices?, to route: AudioRoute, _ found: SoundDevices
    ) -> AudioRouteChangeReason {
        guard !route.isEmpty else { return .noSuitableRouteForCategory }
        let isOutput = previous.outputs != route.outputs
        let (old, new) = isOutput ? (previous.outputs, route.outputs) : (previous.inputs, route.inputs)
        func isThere(_ ports: [AudioPort], in devices: SoundDevices?) -> Bool {
            let list = (isOutput ? devices?.speakers : devices?.microphones) ?? []
            return ports.allSatisfy { $0.isPlugged(into: list) }
        }
        if !isThere(old, in: found) { return .oldDeviceUnavailable }
        return isThere(new, in: former) ? .override : .newDeviceAvailable
    }

    /// The process begins to play or capture, or ends.
    mutating func sounds(_ isSounding: Bool) -> [AudioSessionEvent] {
        guard isSounding != self.isSounding else { return [] }
        self.isSounding = isSounding
        let change: [AudioSessionEvent] =
            isActive == isSounding ? [] : [.willSetActive(isSounding), .didSetActive(isSounding)]
        isActive = isSounding
        return isSounding ? change + [.started] : [.stopped] + change
    }

    /// An interruption begins or ends.
    mutating func interrupted(_ isInterrupted: Bool, by cause: Interruption) -> [AudioSessionEvent] {
        let before = self.isInterrupted
        if isInterrupted { interruptions.insert(cause) } else { interruptions.remove(cause) }
        guard self.isInterrupted != before else { return [] }
        return [.began(interruption: isInterrupted)] + checkWhetherItCan()
    }

    private mutating func checkWhetherItCan() -> [AudioSessionEvent] {
        let can = isServerUp && !route.isEmpty && !isInterrupted
        guard can != canPlayOrRecord else { return [] }
        canPlayOrRecord = can
        return [.canPlayOrRecord(can)]
    }
}
