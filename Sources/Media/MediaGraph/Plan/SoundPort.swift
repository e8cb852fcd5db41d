/// A connector of a microphone or loudspeaker, such as the jack for headphones, as the sound server lists it.
package struct SoundPort: Sendable, Hashable {
    /// The kind of the device at a port, as far as the sound server tells it.
    package enum Kind: Sendable, Hashable, CaseIterable {
        case speaker
        case headphones
        /// Headphones with a microphone.
        case headset
        case earpiece
        case internalMicrophone
        case microphone
        case line
        case display
        case unknown
    }

    /// Unique among the ports of its device.
    package var name: String
    package var kind: Kind
    /// Whether the device uses this port now.
    package var isActive: Bool
    /// Whether the sound server knows that nothing is plugged in.
    package var isUnplugged: Bool

    package init(_ name: String, _ kind: Kind, isActive: Bool = false, isUnplugged: Bool = false) {
        (self.name, self.kind, self.isActive) = (name, kind, isActive)
        // Sound servers call a built-in speaker unavailable while something is in the jack.
        self.isUnplugged = isUnplugged && ![.speaker, .earpiece, .internalMicrophone].contains(kind)
    }
}

extension SoundPort.Kind {
    /// The names that drivers and profiles use, in the order of the search: a `headset-mic` is a headset.
    private static let words: [(word: String, kind: SoundPort.Kind)] = [
        ("internal-mic", .internalMicrophone), ("headset", .headset), ("headphone-mic", .headset),
        ("headphone", .headphones), ("earpiece", .earpiece), ("handset", .earpiece), ("hdmi", .display),
        ("displayport", .display), ("speaker", .speaker), ("line", .line), ("mic", .microphone),
    ]

    /// The kind that the name of a port tells.
    package init(name: String) {
        let name = name.lowercased()
        self = Self.words.first { name.contains($0.word) }?.kind ?? .unknown
    }
}

extension SoundDevices {
    /// The devices, where those without ports have the ones that another list has for them: only the watch of the sound server
    /// learns the ports.
    package func withPorts(of others: SoundDevices?) -> SoundDevices {
        guard let others else { return self }
        func completed(_ devices: [AudioDevice], _ known: [AudioDevice]) -> [AudioDevice] {
            devices.map { device in
                guard device.ports.isEmpty, let match = known.first(where: { $0.identifier == device.identifier })
                else { return device }
                var device = device
                device.ports = match.ports
                return device
            }
        }
        return SoundDevices(
            system, microphones: completed(microphones, others.microphones),
            speakers: completed(speakers, others.speakers))
    }
}
