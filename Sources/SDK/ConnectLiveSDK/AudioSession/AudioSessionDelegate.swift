/// The receiver of audio session events. All methods are optional, and run on the callback queue.
///
/// The session does not retain it.
public protocol AudioSessionDelegate: AnyObject {
    /// The sound server has silenced the rooms, because another program plays with a more urgent role, or the machine goes to sleep.
    /// Microphones are off meanwhile.
    func didBeginInterruption()

    /// The interruption is over: the rooms are heard, and microphones are on.
    ///
    /// - Parameter shouldResumeSession: true. The session resumes by itself.
    func didEndInterruption(shouldResumeSession: Bool)

    /// The microphone or the loudspeaker has changed.
    func didChangeRoute(
        reason: AudioRouteChangeReason, currentRoute: AudioRoute, previousRoute: AudioRoute)

    /// The form of version 2.2.3 and earlier. It is called by the default of the present form.
    func didChangeRoute(reason: AudioRouteChangeReason, previousRoute: AudioRoute)

    /// The sound server has ended.
    func mediaServerTerminated()

    /// The sound server is back. Rooms and microphones use it again by themselves.
    func mediaServerReset()

    /// Whether there is a device for the category, a sound server, and no interruption.
    func didChangeCanPlayOrRecord(canPlayOrRecord: Bool)

    /// The first room plays, or the first microphone is captured.
    func didStartPlayOrRecord()

    /// No room plays, and no microphone is captured any more.
    func didStopPlayOrRecord()

    /// The session begins, with its configuration or with the first sound, or ends with the last sound.
    func willSetActive(active: Bool)

    /// The session has begun or ended.
    func didSetActive(active: Bool)

    /// The session could not begin: no sound system responds. Rooms and microphones still use one that appears.
    ///
    /// - Parameter error: a `ConnectLiveError`
    func failedToSetActive(active: Bool, error: any Error)
}

extension AudioSessionDelegate {
    public func didBeginInterruption() {}
    public func didEndInterruption(shouldResumeSession: Bool) {}

    public func didChangeRoute(
        reason: AudioRouteChangeReason, currentRoute: AudioRoute, previousRoute: AudioRoute
    ) {
        didChangeRoute(reason: reason, previousRoute: previousRoute)
    }

    public func didChangeRoute(reason: AudioRouteChangeReason, previousRoute: AudioRoute) {}
    public func mediaServerTerminated() {}
    public func mediaServerReset() {}
    public func didChangeCanPlayOrRecord(canPlayOrRecord: Bool) {}
    public func didStartPlayOrRecord() {}
    public func didStopPlayOrRecord() {}
    public func willSetActive(active: Bool) {}
    public func didSetActive(active: Bool) {}
    public func failedToSetActive(active: Bool, error: any Error) {}
}
