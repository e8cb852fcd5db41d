internal import RoomClient

/// How the audio of microphones is processed before it is sent.
public enum AudioProcessingType: String, Sendable {
    /// For speech: the echo of the rooms' audio and noise are removed.
    case voice
    /// As the microphone delivers it.
    case music
}

extension LocalMediaOptions {
    /// How the audio of all microphones of the process is processed. `.voice` by default. A change reaches the media that runs,
    /// without a gap in its stream. Files and test patterns are never processed. Callable on any thread.
    ///
    /// If GStreamer's element webrtcdsp (gstreamer1.0-plugins-bad) is not installed, nothing is processed.
    public static var audioType: AudioProcessingType {
        get { VoiceProcessing.choice.value.isOn ? .voice : .music }
        set { VoiceProcessing.choice.change { $0.isOn = newValue == .voice } }
    }

    /// Whether the level of speech is raised or lowered to the usual one. False by default. Only with `.voice`. Callable on any
    /// thread.
    public static var autoGain: Bool {
        get { VoiceProcessing.choice.value.controlsGain }
        set { VoiceProcessing.choice.change { $0.controlsGain = newValue } }
    }

    /// That of the process: `LocalMediaOptions.audioType`.
    @available(*, deprecated, message: "Set LocalMediaOptions.audioType, which holds for all media.")
    public var audioType: AudioProcessingType {
        get { Self.audioType }
        nonmutating set { Self.audioType = newValue }
    }

    /// That of the process: `LocalMediaOptions.autoGain`.
    @available(*, deprecated, message: "Set LocalMediaOptions.autoGain, which holds for all media.")
    public var autoGain: Bool {
        get { Self.autoGain }
        nonmutating set { Self.autoGain = newValue }
    }
}
