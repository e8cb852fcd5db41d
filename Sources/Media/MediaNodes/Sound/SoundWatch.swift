internal import GStreamerKit
package import MediaGraph

/// Follows the microphones and loudspeakers of the sound server, its default devices and its end.
package final class SoundWatch: Sendable {
    private let server: SoundServerWatch

    /// Follows the server until the value is released.
    ///
    /// - Parameter changed: gets the devices at first and after each change. Nil if the server has ended. Called on a queue of
    ///   the watch. Not called while there is no server.
    package init(changed: @escaping @Sendable (SoundDevices?) -> Void) {
        server = SoundServerWatch { found in changed(found.map { SoundSearch.devices(of: .pulse, $0) }) }
    }
}

/// Follows when the machine goes to sleep, and when it is awake again.
package final class MachineSleep: Sendable {
    private let watch: SleepWatch

    /// Follows the machine until the value is released.
    ///
    /// - Parameters:
    ///   - pause: how long the end of the D-Bus may stay unnoticed, in seconds.
    ///   - changed: gets true when the machine is about to sleep, and false when it is awake, or nobody can tell any more. Called on
    ///     a queue of the watch.
    package init(pause: Double = 5, changed: @escaping @Sendable (Bool) -> Void) {
        watch = SleepWatch(pause: pause, changed: changed)
    }
}

extension AudioDevice {
    /// Whether the device is a Bluetooth one: PulseAudio and PipeWire name them so.
    package var isBluetooth: Bool { Self.isBluetooth(identifier) }

    static func isBluetooth(_ identifier: String) -> Bool { identifier.hasPrefix("bluez_") }
}

extension SoundDevices {
    /// The microphone that is used if none is named: the default one, or if that is a Bluetooth one, and none may be used, the
    /// first other one. Nil if there is none.
    package func usualMicrophone(mayBeBluetooth: Bool) -> AudioDevice? {
        let usual = microphones.first { $0.isDefault } ?? (system == .alsa ? microphones.first : nil)
        guard let usual, usual.isBluetooth, !mayBeBluetooth else { return usual }
        return microphones.first { !$0.isBluetooth }
    }

    /// The loudspeaker that is used if none is named. Nil if there is none.
    package var usualSpeaker: AudioDevice? {
        speakers.first { $0.isDefault } ?? (system == .alsa ? speakers.first : nil)
    }
}
