internal import MediaGraph
internal import MediaNodes

/// The microphone and the loudspeaker that the audio session uses: the default ones of the sound server, as far as its category has
/// them. Usable on any thread.
public final class AudioRoute: Sendable, Hashable {
    /// Empty if the category does not record, or there is no microphone.
    public let inputs: [AudioPort]
    /// Empty if the category does not play, or there is no loudspeaker.
    public let outputs: [AudioPort]

    init(inputs: [AudioPort] = [], outputs: [AudioPort] = []) {
        self.inputs = inputs
        self.outputs = outputs
    }

    convenience init(_ devices: SoundDevices?, for configuration: AudioSessionConfiguration) {
        let microphone = devices?.usualMicrophone(mayBeBluetooth: configuration.options.contains(.allowBluetooth))
        self.init(
            inputs: configuration.category.records ? microphone.map { [AudioPort(microphone: $0)] } ?? [] : [],
            outputs: configuration.category.plays ? devices?.usualSpeaker.map { [AudioPort(speaker: $0)] } ?? [] : [])
    }

    var isEmpty: Bool { inputs.isEmpty && outputs.isEmpty }

    public static func == (one: AudioRoute, other: AudioRoute) -> Bool {
        one.inputs == other.inputs && one.outputs == other.outputs
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(inputs)
        hasher.combine(outputs)
    }
}

/// A microphone or a loudspeaker of a route. Usable on any thread.
public final class AudioPort: Sendable, Hashable {
    /// The kind of a port, as far as the name of its device tells it. The raw values are those of `AVAudioSession.Port`.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A microphone of the machine itself.
        case builtInMic = "MicrophoneBuiltIn"
        /// A loudspeaker of the machine itself.
        case builtInSpeaker = "Speaker"
        /// A device at USB.
        case usbAudio = "USBAudio"
        /// A Bluetooth headset in its profile for calls.
        case bluetoothHFP = "BluetoothHFP"
        /// A Bluetooth loudspeaker in its profile for music.
        case bluetoothA2DP = "BluetoothA2DPOutput"
        /// A display with loudspeakers.
        // swift-format-ignore: AlwaysUseLowerCamelCase
        case HDMI = "HDMIOutput"
        /// Of the sound server alone, or unknown.
        case virtual = "Virtual"
    }

    /// Its kind.
    public let portType: Kind
    /// The name to show.
    public let portName: String
    /// The name in the sound system.
    public let uid: String

    init(_ portType: Kind, name: String, uid: String) {
        (self.portType, portName, self.uid) = (portType, name, uid)
    }

    convenience init(microphone device: AudioDevice) {
        self.init(
            Self.kind(device, bluetooth: .bluetoothHFP, builtIn: .builtInMic), name: device.name,
            uid: device.identifier)
    }

    convenience init(speaker device: AudioDevice) {
        let isCall = device.identifier.contains("head") || device.identifier.contains("hands")
        self.init(
            Self.kind(device, bluetooth: isCall ? .bluetoothHFP : .bluetoothA2DP, builtIn: .builtInSpeaker),
            name: device.name, uid: device.identifier)
    }

    private static func kind(_ device: AudioDevice, bluetooth: Kind, builtIn: Kind) -> Kind {
        let name = device.identifier
        if device.isBluetooth { return bluetooth }
        if name.contains(".usb-") { return .usbAudio }
        if name.contains("hdmi") { return .HDMI }
        return name.contains(".pci-") || name.contains(".platform-") || name.hasPrefix("hw:") ? builtIn : .virtual
    }

    public static func == (one: AudioPort, other: AudioPort) -> Bool { one.uid == other.uid }

    public func hash(into hasher: inout Hasher) { hasher.combine(uid) }
}

/// The reason for a new route. The raw values are those of `AVAudioSession.RouteChangeReason`.
public enum AudioRouteChangeReason: UInt, Sendable, Hashable, CaseIterable {
    /// Another reason.
    case unknown = 0
    /// A device was plugged in, and is the default one now.
    case newDeviceAvailable = 1
    /// The device was unplugged.
    case oldDeviceUnavailable = 2
    /// The application has set another category.
    case categoryChange = 3
    /// The user has made another device the default one.
    case override = 4
    /// Never on Linux.
    case wakeFromSleep = 6
    /// There is neither a microphone nor a loudspeaker for the category any more.
    case noSuitableRouteForCategory = 7
    /// Never on Linux.
    case routeConfigurationChange = 8
}
