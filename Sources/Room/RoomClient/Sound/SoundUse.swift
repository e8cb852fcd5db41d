package import MediaNodes

/// How the process uses the sound system, as the audio session of the application decides.
package struct SoundUse: Sendable, Equatable {
    /// The audio of all rooms.
    package struct Playing: Sendable, Equatable {
        /// Without it, audio of rooms is measured, and no loudspeaker opens.
        package var isAllowed = true
        package var role = AudioRole.none
        /// How much audio the sound system has, in milliseconds. Nil means the default of a loudspeaker node.
        package var buffer: Int?

        package init() {}
    }

    /// The audio of all microphones of local media.
    package struct Capturing: Sendable, Equatable {
        /// Without it, no microphone opens, and the audio of local media is off.
        package var isAllowed = true
        package var role = AudioRole.none
        /// Whether an automatic microphone may be a Bluetooth one.
        package var mayBeBluetooth = true
        /// Whether audio is processed as `VoiceProcessing` says. Otherwise it stays unchanged.
        package var isProcessed = true

        package init() {}
    }

    /// That of the process.
    package static let choice = ProcessChoice(SoundUse())

    package var playing = Playing()
    package var capturing = Capturing()

    package init() {}
}
