internal import Dispatch
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import Synchronization

/// The audio session of the process, from its first configuration on: it decides how rooms and microphones use the sound system, and
/// follows the sound server and the sleep of the machine.
final class AudioSession: Sendable {
    struct State {
        /// The application's, which takes effect at once. Nil before the first one: then the sound system is used as without a session.
        var wished: AudioSessionConfiguration?
        var session = AudioSessionState()
        fileprivate var delegate = WeakDelegate(value: nil)
        /// Those that follow the machine, from the first configuration on.
        fileprivate var watches: (sound: SoundWatch, sleep: MachineSleep)?
        /// Events that wait for the callback queue, each with the delegate at its time.
        fileprivate var waiting: [(event: AudioSessionEvent, delegate: WeakDelegate)] = []
    }

    /// Sendable by hand: reading a weak reference is atomic, and the delegate is called only on the callback queue.
    fileprivate struct WeakDelegate: @unchecked Sendable {
        weak let value: (any AudioSessionDelegate)?
    }

    /// How many events may wait. One more drops the oldest.
    private static let capacity = 256

    static let shared = AudioSession()

    let state = Mutex(State())
    /// Changes of the session, one after the other. The question for its devices may block.
    let queue = DispatchQueue(label: "sdk.audio-session")

    /// Takes effect at once for rooms and microphones. The delegate replaces the former one.
    func configure(_ configuration: AudioSessionConfiguration, _ delegate: (any AudioSessionDelegate)?) {
        let delegate = WeakDelegate(value: delegate)
        state.withLock { state in
            state.wished = configuration
            // Queued under the lock, so that the session begins with the last one.
            queue.async { [self] in
                self.state.withLock { $0.delegate = delegate }
                activate(configuration)
            }
        }
        applyUse()
    }

    /// Begins the session again, with the configuration and the delegate that it has. Without one, nothing begins.
    func configureAgain() {
        queue.async { [self] in
            if let configuration = state.withLock({ $0.wished }) { activate(configuration) }
        }
    }

    private func activate(_ configuration: AudioSessionConfiguration) {
        let (devices, problem) = Devices.soundDevices()
        change { $0.activate(configuration, devices, isLate: problem != nil) }
        if state.withLock({ $0.watches == nil }) { follow() }
    }

    private func follow() {
        let sound = SoundWatch { [weak self] found in self?.changeLater { $0.devicesChanged(found) } }
        let sleep = MachineSleep { [weak self] isAsleep in
            self?.changeLater { $0.interrupted(isAsleep, by: .sleep) }
        }
        state.withLock { $0.watches = (sound, sleep) }
        SoundActivity.shared.observe { [weak self] event in
            self?.changeLater { session in
                switch event {
                case .began: session.sounds(true)
                case .ended: session.sounds(false)
                case .interrupted(let isInterrupted): session.interrupted(isInterrupted, by: .server)
                }
            }
        }
    }

    private func changeLater(_ body: @escaping @Sendable (inout AudioSessionState) -> [AudioSessionEvent]) {
        queue.async { [self] in change(body) }
    }

    /// On the queue.
    private func change(_ body: (inout AudioSessionState) -> [AudioSessionEvent]) {
        let isFirst = state.withLock { state in
            let before = state.waiting.isEmpty
            let delegate = state.delegate
            state.waiting += body(&state.session).map { (event: $0, delegate: delegate) }
            state.waiting.removeFirst(max(0, state.waiting.count - Self.capacity))
            return before && !state.waiting.isEmpty
        }
        applyUse()
        if isFirst { CallbackQueue.shared.run { [self] in tell() } }
    }

    private func applyUse() {
        // Read under the lock of the choice, so that the last one stays.
        SoundUse.choice.change { choice in
            choice = state.withLock { $0.wished?.use(isInterrupted: $0.session.isInterrupted) } ?? choice
        }
    }

    /// On the callback queue.
    private func tell() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for (event, delegate) in waiting {
            if let delegate = delegate.value { event.tell(delegate) }
        }
    }
}

extension ConnectLive {
    /// Decides how the rooms and microphones of this process use the sound system, those that run included. Without a call, they
    /// play and record, tell the sound server no role, and use any microphone. docs/sound.md lists the effect of each value.
    ///
    /// - Parameters:
    ///   - delegate: gets the events of the session on the callback queue. It replaces that of an earlier call. The session does not
    ///     retain it.
    public static func setAudioSessionConfiguration(
        category: AudioSessionCategory, mode: AudioSessionMode, options: AudioSessionOptions,
        delegate: (any AudioSessionDelegate)? = nil
    ) {
        let configuration = AudioSessionConfiguration(category: category, mode: mode, options: options)
        AudioSession.shared.configure(configuration, delegate)
    }

    /// The form of version 2.0.6.
    ///
    /// - Parameter ioBufferDuration: how much audio of the rooms the sound system has, in seconds, 0.06...1
    @available(*, deprecated, message: "Leave ioBufferDuration out.")
    public static func setAudioSessionConfiguration(
        category: AudioSessionCategory, mode: AudioSessionMode, options: AudioSessionOptions,
        ioBufferDuration: Double = 0.06, delegate: (any AudioSessionDelegate)? = nil
    ) {
        let configuration = AudioSessionConfiguration(
            category: category, mode: mode, options: options, ioBufferDuration: ioBufferDuration)
        AudioSession.shared.configure(configuration, delegate)
    }

    /// Begins the audio session again with the configuration that it has, such as after `mediaServerReset`, or when the last
    /// sound has ended it. Before the first configuration, it changes nothing.
    public static func setAudioSessionWithCurrentCategory() { AudioSession.shared.configureAgain() }
}
