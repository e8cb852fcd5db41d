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
    /// The kind of a port, as far as the sound server or the name of the device tells it. The raw values are those of
    /// `AVAudioSession.Port`.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A microphone of the machine itself.
        case builtInMic = "MicrophoneBuiltIn"
        /// A loudspeaker of the machine itself.
        case builtInSpeaker = "Speaker"
        /// The microphone of a headset in a jack.
        case headsetMic = "MicrophoneWired"
        /// Headphones or a headset in a jack.
        case headphones = "Headphones"
        /// The earpiece of a telephone.
        case builtInReceiver = "Receiver"
        /// A line input.
        case lineIn = "LineIn"
        /// A line output.
        case lineOut = "LineOut"
        /// A device at USB.
        case usbAudio = "USBAudio"
        /// A Bluetooth headset in its profile for calls.
        case bluetoothHFP = "BluetoothHFP"
        /// A Bluetooth loudspeaker in its profile for music.
        case bluetoothA2DP = "BluetoothA2DPOutput"
        /// A display with loudspeakers.
        // swift-format-ignore: AlwaysUseLowerCamelCase
        case HDMI = "HDMIOutput"
        /// Never on Linux.
        case bluetoothLE = "BluetoothLE"
        /// Never on Linux.
        case airPlay = "AirPlay"
        /// Never on Linux.
        case carAudio = "CarAudio"
        /// Of the sound server alone, or unknown.
        case virtual = "Virtual"
    }

    /// Its kind.
    public let portType: Kind
    /// The name to show.
    public let portName: String
    /// The name in the sound system.
    public let uid: String
    /// The name of the jack within the device. Nil if it is not known.
    let jack: String?

    private init(_ device: AudioDevice, _ portType: Kind) {
        (self.portType, portName, uid, jack) = (portType, device.name, device.identifier, device.port?.name)
    }

    convenience init(microphone device: AudioDevice) {
        let builtIn: Kind =
            switch device.port?.kind {
            case .headset, .headphones: .headsetMic
            case .line: .lineIn
            default: .builtInMic
            }
        self.init(device, Self.kind(device, bluetooth: .bluetoothHFP, builtIn: builtIn))
    }

    convenience init(speaker device: AudioDevice) {
        let isCall = device.identifier.contains("head") || device.identifier.contains("hands")
        let builtIn: Kind =
            switch device.port?.kind {
            case .headset, .headphones: .headphones
            case .line: .lineOut
            case .earpiece: .builtInReceiver
            default: .builtInSpeaker
            }
        self.init(
            device, Self.kind(device, bluetooth: isCall ? .bluetoothHFP : .bluetoothA2DP, builtIn: builtIn))
    }

    private static func kind(_ device: AudioDevice, bluetooth: Kind, builtIn: Kind) -> Kind {
        let name = device.identifier
        if device.isBluetooth { return bluetooth }
        if name.contains(".usb-") { return .usbAudio }
        if device.port?.kind == .display || name.contains("hdmi") { return .HDMI }
        return name.contains(".pci-") || name.contains(".platform-") || name.hasPrefix("hw:") ? builtIn : .virtual
    }

    public static func == (one: AudioPort, other: AudioPort) -> Bool { one.uid == other.uid && one.jack == other.jack }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(uid)
        hasher.combine(jack)
    }

    /// Whether the device is there, and something is in its jack.
    func isPlugged(into devices: [AudioDevice]) -> Bool {
        guard let device = devices.first(where: { $0.identifier == uid }) else { return false }
        return device.ports.first { $0.name == jack }?.isUnplugged != true
    }
}

/// The reason for a new route. The raw values are those of `AVAudioSession.RouteChangeReason`.
public enum AudioRouteChangeReason: UInt, Sendable, Hashable, CaseIterable {
    /// Another reason.
    case unknown = 0
    /// A device was plugged in, also into a jack of the default device, and is the default one now.
    case newDeviceAvailable = 1
    /// The device was unplugged.
    case oldDeviceUnavailable = 2
    /// The application has set another category.
    case categoryChange = 3
    /// The user has chosen another device or jack.
    case override = 4
    /// Never on Linux.
    case wakeFromSleep = 6
    /// There is neither a microphone nor a loudspeaker for the category any more.
    case noSuitableRouteForCategory = 7
    /// Never on Linux.
    case routeConfigurationChange = 8
}
