public import MediaGraph

/// The purpose of the audio of a loudspeaker or microphone. A sound server may lower or silence streams of some roles while one of another
/// plays: PulseAudio's module-role-cork silences `music` and `video` during `phone`.
public enum AudioRole: String, SettingChoice {
    /// The sound server is told no role.
    case none
    /// A call.
    case phone
    /// Music alone.
    case music
    /// The sound of a film.
    case video
    /// The sound of a game.
    case game
    /// Recording and editing of audio.
    case production

    /// The properties with which an element tells its sound server. ALSA has none.
    func properties(of factory: String) -> [String: SettingValue] {
        guard self != .none else { return [:] }
        return switch factory {
        case "pulsesink", "pulsesrc": ["stream-properties": .text("props,media.role=\(rawValue)")]
        case "pipewiresink", "pipewiresrc": ["stream-properties": .text("props,media.role=\(pipeWireName)")]
        default: [:]
        }
    }

    /// PipeWire has other words than PulseAudio.
    private var pipeWireName: String {
        switch self {
        case .phone: "Communication"
        case .video: "Movie"
        case .none, .music, .game, .production: rawValue.prefix(1).uppercased() + rawValue.dropFirst()
        }
    }

    /// The role that a node's settings state.
    static func of(_ settings: some NodeSettings) -> AudioRole { AudioRole(rawValue: settings.text("role")) ?? .none }

    static let contract = SettingContract(
        "role", settingDomain, default: "none",
        "Purpose of the audio, by which a sound server may lower or silence other streams meanwhile")
}
