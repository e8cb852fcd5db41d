internal import MediaNodes
internal import RoomClient

/// Whether an application plays or records. The raw values are those of `AVAudioSession.Category`.
public enum AudioSessionCategory: String, Sendable, Hashable, CaseIterable {
    /// Plays, beside other programs. No microphone opens.
    case ambient = "AVAudioSessionCategoryAmbient"
    /// Plays. No microphone opens.
    case soloAmbient = "AVAudioSessionCategorySoloAmbient"
    /// Plays. No microphone opens.
    case playback = "AVAudioSessionCategoryPlayback"
    /// Records. No room is heard.
    case record = "AVAudioSessionCategoryRecord"
    /// Plays and records.
    case playAndRecord = "AVAudioSessionCategoryPlayAndRecord"
    /// As `playAndRecord`: the sound server chooses the device of each stream.
    case multiRoute = "AVAudioSessionCategoryMultiRoute"

    var plays: Bool { self != .record }
    var records: Bool { self == .record || self == .playAndRecord || self == .multiRoute }
}

/// The use of the sound within a category. The raw values are those of `AVAudioSession.Mode`.
public enum AudioSessionMode: String, Sendable, Hashable, CaseIterable {
    /// The use that the category alone states.
    case `default` = "AVAudioSessionModeDefault"
    /// A call.
    case voiceChat = "AVAudioSessionModeVoiceChat"
    /// A call with video.
    case videoChat = "AVAudioSessionModeVideoChat"
    /// A call of players. A category that only plays has the role of a game.
    case gameChat = "AVAudioSessionModeGameChat"
    /// Audio for a video that is recorded: the role is that of a recorder.
    case videoRecording = "AVAudioSessionModeVideoRecording"
    /// The audio of microphones is not processed, whatever `LocalMediaOptions.audioType` is.
    case measurement = "AVAudioSessionModeMeasurement"
    /// A film. A category that only plays has the role of a video.
    case moviePlayback = "AVAudioSessionModeMoviePlayback"
    /// Continuous speech, as `default` on Linux.
    case spokenAudio = "AVAudioSessionModeSpokenAudio"
    /// Short announcements, as `default` on Linux.
    case voicePrompt = "AVAudioSessionModeVoicePrompt"
}

/// Options of a category. The raw values are those of `AVAudioSession.CategoryOptions`.
public struct AudioSessionOptions: OptionSet, Sendable, Hashable {
    /// Other programs play on during a call, as loud as before unless `duckOthers` is set too: the sound server is told no role of
    /// a call.
    public static let mixWithOthers = AudioSessionOptions(rawValue: 1 << 0)
    /// The sound server lowers or silences other programs during a call, as its modules decide, also with `mixWithOthers`. So it
    /// does without options.
    public static let duckOthers = AudioSessionOptions(rawValue: 1 << 1)
    /// The microphone may be a Bluetooth one. Without this option, the first other one is used.
    public static let allowBluetooth = AudioSessionOptions(rawValue: 1 << 2)
    /// None on Linux: the sound server chooses the port of a device.
    public static let defaultToSpeaker = AudioSessionOptions(rawValue: 1 << 3)
    /// As `mixWithOthers`.
    public static let interruptSpokenAudioAndMixWithOthers = AudioSessionOptions(rawValue: 1 << 4 | 1 << 0)
    /// None on Linux: a loudspeaker is the default one of the sound server, also if it is a Bluetooth one.
    public static let allowBluetoothA2DP = AudioSessionOptions(rawValue: 1 << 5)
    /// None on Linux.
    public static let allowAirPlay = AudioSessionOptions(rawValue: 1 << 6)
    /// None on Linux.
    public static let overrideMutedMicrophoneInterruption = AudioSessionOptions(rawValue: 1 << 7)

    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }
}

/// The configuration of the audio session, and the use of the sound system that follows from it.
struct AudioSessionConfiguration: Equatable {
    /// Less would be heard before the echo canceller has it, more is as late as a satellite.
    private static let buffers = 0.06...1

    var category = AudioSessionCategory.playAndRecord
    var mode = AudioSessionMode.default
    var options: AudioSessionOptions = []
    /// In seconds. Nil means the default.
    var ioBufferDuration: Double?

    /// The role that the sound server is told.
    var role: AudioRole {
        // Then it neither silences another program nor is silenced by one.
        let mixes = options.contains(.mixWithOthers) && !options.contains(.duckOthers)
        return switch (category, mode) {
        case (.playAndRecord, _) where mixes, (.multiRoute, _) where mixes, (.record, _) where mixes: .none
        case (_, .measurement): .production
        case (_, .videoRecording), (.record, _): .production
        case (.playAndRecord, _), (.multiRoute, _): .phone
        case (_, .moviePlayback): .video
        case (_, .gameChat): .game
        case (.ambient, _), (.soloAmbient, _), (.playback, _): .music
        }
    }

    /// - Parameter isInterrupted: whether another program, or the sleep of the machine, interrupts the session. The loudspeaker stays
    ///   open then, silenced by the sound server, which tells by it when the interruption ends.
    func use(isInterrupted: Bool) -> SoundUse {
        var use = SoundUse()
        use.playing.isAllowed = category.plays
        use.playing.role = role
        use.playing.buffer = ioBufferDuration.map { seconds in
            let seconds = seconds.isNaN ? Self.buffers.lowerBound : seconds
            return Int((min(max(seconds, Self.buffers.lowerBound), Self.buffers.upperBound) * 1000).rounded())
        }
        use.capturing.isAllowed = category.records && !isInterrupted
        use.capturing.role = role
        use.capturing.mayBeBluetooth = options.contains(.allowBluetooth)
        use.capturing.isProcessed = mode != .measurement
        return use
    }
}
