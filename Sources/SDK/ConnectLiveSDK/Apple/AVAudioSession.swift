// Apple's names of the audio session's types. (Linux)

/// The names of types with which code for iOS configures the audio session: see `ConnectLive.setAudioSessionConfiguration`.
public enum AVAudioSession {
    public typealias Category = AudioSessionCategory
    public typealias Mode = AudioSessionMode
    public typealias CategoryOptions = AudioSessionOptions
    public typealias RouteChangeReason = AudioRouteChangeReason
    public typealias Port = AudioPort.Kind
}

public typealias AVAudioSessionRouteDescription = AudioRoute
public typealias AVAudioSessionPortDescription = AudioPort
