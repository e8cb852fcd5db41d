/// How the audio of microphones is processed.
package struct VoiceProcessing: Sendable, Equatable {
    /// That of all microphones of the process.
    package static let choice = ProcessChoice(VoiceProcessing())

    /// Whether the echo of the loudspeaker and noise are removed. Otherwise the audio stays unchanged, such as for music.
    package var isOn = true
    /// Whether the level is raised or lowered to one of speech. Only while processing is on.
    package var controlsGain = false

    package init() {}
}
