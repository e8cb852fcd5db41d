// Apple's names of the audio session's types. (Linux)

/// The names of types with which code for iOS configures the audio session: see `ConnectLive.setAudioSessionConfiguration`.
public enum AVAudioSession {
    /// Whether an application plays or records.
    public typealias Category = AudioSessionCategory
    /// The use of the sound within a category.
    public typealias Mode = AudioSessionMode
    /// Options of a category.
    public typealias CategoryOptions = AudioSessionOptions
    /// The reason for a new route.
    public typealias RouteChangeReason = AudioRouteChangeReason
    /// The kind of a port.
    public typealias Port = AudioPort.Kind
}

/// The microphone and the loudspeaker of the audio session.
public typealias AVAudioSessionRouteDescription = AudioRoute
/// A microphone or a loudspeaker of a route.
public typealias AVAudioSessionPortDescription = AudioPort
