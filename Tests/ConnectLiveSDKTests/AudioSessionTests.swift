import ConnectLiveSDK
import MediaGraph
import MediaNodes
import RoomClient
import RoomProtocol
import Testing

@testable import ConnectLiveSDK

/// The audio session's table of categories, modes and options.
@Suite struct AudioSessionUseTests {
    private func use(
        _ category: AudioSessionCategory, _ mode: AudioSessionMode = .default, _ options: AudioSessionOptions = [],
        buffer: Double? = nil, isInterrupted: Bool = false
    ) -> SoundUse {
        AudioSessionConfiguration(category: category, mode: mode, options: options, ioBufferDuration: buffer)
            .use(isInterrupted: isInterrupted)
    }

    @Test(arguments: [
        (AudioSessionCategory.ambient, true, false), (.soloAmbient, true, false), (.playback, true, false),
        (.record, false, true), (.playAndRecord, true, true), (.multiRoute, true, true),
    ])
    func `a category decides whether rooms are heard and microphones open`(
        _ category: AudioSessionCategory, plays: Bool, records: Bool
    ) {
        #expect(use(category).playing.isAllowed == plays && use(category).capturing.isAllowed == records)
    }

    @Test func `a call has the role of a phone, unless others play on as loud as before`() {
        for mode in [AudioSessionMode.default, .voiceChat, .videoChat, .spokenAudio, .voicePrompt] {
            #expect(use(.playAndRecord, mode).playing.role == .phone)
            #expect(use(.playAndRecord, mode).capturing.role == .phone)
            #expect(use(.playAndRecord, mode, .duckOthers).playing.role == .phone)
            #expect(use(.playAndRecord, mode, [.mixWithOthers, .duckOthers]).playing.role == .phone)
            #expect(use(.playAndRecord, mode, .mixWithOthers).playing.role == .none)
            #expect(use(.playAndRecord, mode, .interruptSpokenAudioAndMixWithOthers).capturing.role == .none)
        }
    }

    @Test func `audio that is only played or only recorded has the role of its kind`() {
        #expect(use(.playback).playing.role == .music && use(.ambient).playing.role == .music)
        // A call interrupts it nevertheless.
        #expect(use(.playback, .default, .mixWithOthers).playing.role == .music)
        #expect(use(.playback, .moviePlayback).playing.role == .video)
        #expect(use(.playback, .gameChat).playing.role == .game)
        #expect(use(.record).capturing.role == .production)
        #expect(use(.record, .default, .mixWithOthers).capturing.role == .none)
        #expect(use(.playAndRecord, .measurement).capturing.role == .production)
        #expect(use(.playAndRecord, .videoRecording).capturing.role == .production)
    }

    @Test func `a measurement is not processed, and everything else as the media options say`() {
        for mode in AudioSessionMode.allCases {
            #expect(use(.playAndRecord, mode).capturing.isProcessed == (mode != .measurement))
        }
    }

    @Test func `a Bluetooth microphone needs its option`() {
        #expect(!use(.playAndRecord).capturing.mayBeBluetooth)
        #expect(use(.playAndRecord, .default, .allowBluetooth).capturing.mayBeBluetooth)
        #expect(!use(.playAndRecord, .default, .allowBluetoothA2DP).capturing.mayBeBluetooth)
    }

    @Test(
        arguments: [
            (nil, nil), (0.06, 60), (0.2, 200), (0, 60), (-1, 60), (60, 1000), (.nan, 60), (.infinity, 1000),
        ] as [(Double?, Int?)])
    func `a duration of buffers becomes one that the loudspeaker can have`(_ seconds: Double?, _ milliseconds: Int?) {
        #expect(use(.playAndRecord, buffer: seconds).playing.buffer == milliseconds)
    }

    @Test func `an interruption closes microphones, and leaves the loudspeaker to the sound server`() {
        let interrupted = use(.playAndRecord, isInterrupted: true)
        #expect(!interrupted.capturing.isAllowed && interrupted.playing == use(.playAndRecord).playing)
    }

    @Test func `raw values are Apple's`() {
        #expect(AVAudioSession.Category.playAndRecord.rawValue == "AVAudioSessionCategoryPlayAndRecord")
        #expect(AVAudioSession.Mode.videoChat.rawValue == "AVAudioSessionModeVideoChat")
        let options: AVAudioSession.CategoryOptions = [.mixWithOthers, .defaultToSpeaker, .allowBluetooth]
        #expect(options.rawValue == 13)
        #expect(AVAudioSession.CategoryOptions.interruptSpokenAudioAndMixWithOthers.rawValue == 17)
        #expect(AVAudioSession.RouteChangeReason.oldDeviceUnavailable.rawValue == 2)
        #expect(AVAudioSession.Port.builtInSpeaker.rawValue == "Speaker")
        #expect(AVAudioSession.Port.headphones.rawValue == "Headphones")
        #expect(AVAudioSession.Port.headsetMic.rawValue == "MicrophoneWired")
    }
}

/// The events of the audio session.
@Suite struct AudioSessionStateTests {
    private static func device(_ name: String, isDefault: Bool = false) -> AudioDevice {
        AudioDevice(identifier: name, name: name, isDefault: isDefault)
    }

    private static func devices(
        speakers: [String] = ["speaker"], microphones: [String] = ["microphone"], usual: Set<String>? = nil
    ) -> SoundDevices {
        func list(_ names: [String]) -> [AudioDevice] {
            names.enumerated().map { device($1, isDefault: usual?.contains($1) ?? ($0 == 0)) }
        }
        return SoundDevices(.pulse, microphones: list(microphones), speakers: list(speakers))
    }

    private static func configuration(
        _ category: AudioSessionCategory = .playAndRecord, _ options: AudioSessionOptions = []
    ) -> AudioSessionConfiguration { AudioSessionConfiguration(category: category, options: options) }

    private func words(_ events: [AudioSessionEvent]) -> [String] {
        func ports(_ route: AudioRoute) -> String {
            "\(route.outputs.map(\.uid).joined())/\(route.inputs.map(\.uid).joined())"
        }
        return events.map { event in
            switch event {
            case .began(let interruption): interruption ? "interruption" : "end of interruption"
            case .route(let reason, let current, let previous): "\(reason) \(ports(previous)) > \(ports(current))"
            case .serverTerminated: "terminated"
            case .serverReset: "reset"
            case .canPlayOrRecord(let can): can ? "can" : "cannot"
            case .started: "started"
            case .stopped: "stopped"
            case .willSetActive(let active): "will \(active)"
            case .didSetActive(let active): "did \(active)"
            case .failedToSetActive(let active, let error): "failed \(active) \(error.code)"
            }
        }
    }

    private func begun(_ category: AudioSessionCategory = .playAndRecord) -> AudioSessionState {
        var session = AudioSessionState()
        _ = session.activate(Self.configuration(category), Self.devices())
        return session
    }

    @Test func `a configuration begins the session, and another category changes the route`() {
        var session = AudioSessionState()
        #expect(words(session.activate(Self.configuration(), Self.devices())) == ["will true", "did true"])
        #expect(
            words(session.activate(Self.configuration(.playback), Self.devices())) == [
                "will true", "did true", "categoryChange speaker/microphone > speaker/",
            ])
        #expect(
            words(session.activate(Self.configuration(.record), Self.devices())) == [
                "will true", "did true", "categoryChange speaker/ > /microphone",
            ])
        #expect(words(session.activate(Self.configuration(.record), Self.devices())) == ["will true", "did true"])
    }

    @Test func `without a sound system, the session cannot begin`() {
        var session = AudioSessionState()
        #expect(
            words(session.activate(Self.configuration(), nil)) == ["will true", "failed true speaker.absent", "cannot"])
        #expect(words(session.devicesChanged(Self.devices())).first == "reset")
        #expect(words(session.activate(Self.configuration(), Self.devices())) == ["will true", "did true"])
        #expect(words(session.activate(Self.configuration(.record), nil))[1] == "failed true microphone.absent")
    }

    @Test func `a sound server that answers late is known by its watch`() {
        var session = begun()
        #expect(words(session.devicesChanged(Self.devices())) == [])
        #expect(
            words(session.activate(Self.configuration(.playback), nil, isLate: true)) == [
                "will true", "did true", "categoryChange speaker/microphone > speaker/",
            ])
        #expect(words(session.devicesChanged(nil)) == ["terminated", "cannot"])
        // The watch has not reported yet.
        var other = AudioSessionState()
        #expect(
            words(other.activate(Self.configuration(), nil, isLate: true)) == [
                "will true", "failed true speaker.absent", "cannot",
            ])
        #expect(words(other.devicesChanged(Self.devices())).suffix(1) == ["can"])
    }

    @Test func `the first sound begins a session that has ended, and the last one ends it`() {
        var session = begun()
        #expect(words(session.sounds(true)) == ["started"])
        #expect(words(session.sounds(true)) == [])
        #expect(words(session.sounds(false)) == ["stopped", "will false", "did false"])
        #expect(words(session.sounds(true)) == ["will true", "did true", "started"])
    }

    @Test func `a device that is plugged in, chosen and unplugged has its reason`() {
        var session = begun()
        // It is there, and not the default one.
        #expect(words(session.devicesChanged(Self.devices(speakers: ["speaker", "desk"]))) == [])
        let chosen = Self.devices(speakers: ["speaker", "desk"], usual: ["desk", "microphone"])
        #expect(words(session.devicesChanged(chosen)) == ["override speaker/microphone > desk/microphone"])
        #expect(
            words(session.devicesChanged(Self.devices())) == [
                "oldDeviceUnavailable desk/microphone > speaker/microphone"
            ])
        let headset = Self.devices(speakers: ["speaker", "headset"], usual: ["headset", "microphone"])
        #expect(
            words(session.devicesChanged(headset)) == ["newDeviceAvailable speaker/microphone > headset/microphone"])
        let other = Self.devices(microphones: ["microphone", "second"], usual: ["speaker", "second"])
        #expect(
            words(session.devicesChanged(other)) == ["oldDeviceUnavailable headset/microphone > speaker/second"])
        #expect(
            words(session.devicesChanged(Self.devices(speakers: [], microphones: []))) == [
                "noSuitableRouteForCategory speaker/second > /", "cannot",
            ])
        #expect(
            words(session.devicesChanged(Self.devices())) == [
                "newDeviceAvailable / > speaker/microphone", "can",
            ])
    }

    @Test func `a category without a microphone hears nothing of microphones`() {
        var session = begun(.playback)
        #expect(words(session.devicesChanged(Self.devices(microphones: ["other"]))) == [])
    }

    @Test func `a sound server that ends and returns is reported, and another device afterwards`() {
        var session = begun()
        #expect(words(session.devicesChanged(nil)) == ["terminated", "cannot"])
        #expect(words(session.devicesChanged(nil)) == [])
        #expect(words(session.devicesChanged(Self.devices())) == ["reset", "can"])
        _ = session.devicesChanged(nil)
        #expect(
            words(session.devicesChanged(Self.devices(speakers: ["desk"]))) == [
                "reset", "oldDeviceUnavailable speaker/microphone > desk/microphone", "can",
            ])
    }

    @Test func `a session that begins again after the end of the sound server hears of its return`() {
        var session = begun()
        _ = session.devicesChanged(nil)
        let cards = SoundDevices(
            .alsa, microphones: [Self.device("hw:0,0")], speakers: [Self.device("hw:0,0")])
        #expect(
            words(session.activate(Self.configuration(), cards)) == [
                "will true", "did true", "categoryChange speaker/microphone > hw:0,0/hw:0,0",
            ])
        #expect(
            words(session.devicesChanged(Self.devices())) == [
                "reset", "oldDeviceUnavailable hw:0,0/hw:0,0 > speaker/microphone", "can",
            ])
        _ = session.devicesChanged(nil)
        // The server is there again, and its watch has not noticed yet.
        #expect(words(session.activate(Self.configuration(), Self.devices())) == ["will true", "did true"])
        #expect(words(session.devicesChanged(Self.devices())) == ["reset", "can"])
    }

    @Test func `two interruptions at a time are one`() {
        var session = begun()
        #expect(words(session.interrupted(true, by: .server)) == ["interruption", "cannot"])
        #expect(session.isInterrupted)
        #expect(words(session.interrupted(true, by: .sleep)) == [])
        #expect(words(session.interrupted(false, by: .server)) == [])
        #expect(words(session.interrupted(false, by: .sleep)) == ["end of interruption", "can"])
        #expect(!session.isInterrupted)
    }

    @Test func `the route has no Bluetooth microphone without its option`() {
        let devices = Self.devices(microphones: ["bluez_input.1", "desk"])
        #expect(AudioRoute(devices, for: Self.configuration()).inputs.map(\.uid) == ["desk"])
        let allowed = AudioRoute(devices, for: Self.configuration(.playAndRecord, .allowBluetooth))
        #expect(allowed.inputs.map(\.uid) == ["bluez_input.1"] && allowed.inputs[0].portType == .bluetoothHFP)
    }

    @Test(arguments: [
        ("alsa_output.pci-0000_00_1f.3.analog-stereo", AudioPort.Kind.builtInSpeaker),
        ("alsa_output.pci-0000_01_00.1.hdmi-stereo", .HDMI), ("alsa_output.usb-Jabra-00.analog-stereo", .usbAudio),
        ("bluez_sink.00_11.a2dp_sink", .bluetoothA2DP), ("bluez_sink.00_11.handsfree_head_unit", .bluetoothHFP),
        ("hw:0,0", .builtInSpeaker), ("null", .virtual),
    ])
    func `the name of a loudspeaker tells its kind`(_ name: String, _ kind: AudioPort.Kind) {
        #expect(AudioPort(speaker: Self.device(name)).portType == kind)
    }

    // MARK: - Jacks

    private static let card = "alsa_card.pci-0000_00_1f.3.analog-stereo"

    /// A card with a built-in speaker and microphone and a jack for a headset.
    private static func jacks(output: String, input: String, isUnplugged: Bool) -> SoundDevices {
        var (speaker, microphone) = (device(card, isDefault: true), device(card, isDefault: true))
        speaker.ports = [
            // As PulseAudio has it: the speaker is unavailable while something is in the jack.
            SoundPort("speaker", .speaker, isActive: output == "speaker", isUnplugged: !isUnplugged),
            SoundPort("headphones", .headphones, isActive: output == "headphones", isUnplugged: isUnplugged),
        ]
        microphone.ports = [
            SoundPort("internal", .internalMicrophone, isActive: input == "internal", isUnplugged: !isUnplugged),
            SoundPort("headset", .headset, isActive: input == "headset", isUnplugged: isUnplugged),
        ]
        return SoundDevices(.pulse, microphones: [microphone], speakers: [speaker])
    }

    private func reasons(_ events: [AudioSessionEvent]) -> [String] {
        events.map { event in
            guard case .route(let reason, let current, let previous) = event else { return "\(event)" }
            let kinds = [previous, current].map { ($0.outputs + $0.inputs).map { "\($0.portType)" } }
            return "\(reason) \(kinds[0]) > \(kinds[1])"
        }
    }

    @Test func `headphones that are pulled out of a jack, plugged in, and chosen in settings change the route`() {
        let headset = Self.jacks(output: "headphones", input: "headset", isUnplugged: false)
        let none = Self.jacks(output: "speaker", input: "internal", isUnplugged: true)
        var session = AudioSessionState()
        _ = session.activate(Self.configuration(), headset)
        #expect(
            reasons(session.devicesChanged(none)) == [
                "oldDeviceUnavailable [\"headphones\", \"headsetMic\"] > [\"builtInSpeaker\", \"builtInMic\"]"
            ])
        #expect(
            reasons(session.devicesChanged(headset)) == [
                "newDeviceAvailable [\"builtInSpeaker\", \"builtInMic\"] > [\"headphones\", \"headsetMic\"]"
            ])
        let chosen = Self.jacks(output: "speaker", input: "headset", isUnplugged: false)
        #expect(
            reasons(session.devicesChanged(chosen)) == [
                "override [\"headphones\", \"headsetMic\"] > [\"builtInSpeaker\", \"headsetMic\"]"
            ])
    }

    /// The sound server is first asked by GStreamer, which does not tell ports.
    @Test func `ports that become known are no change of the route, and stay known`() {
        let plain = SoundDevices(
            .pulse, microphones: [Self.device(Self.card, isDefault: true)],
            speakers: [Self.device(Self.card, isDefault: true)])
        var session = AudioSessionState()
        _ = session.activate(Self.configuration(), plain)
        let headset = Self.jacks(output: "headphones", input: "headset", isUnplugged: false)
        #expect(reasons(session.devicesChanged(headset)) == [])
        #expect(words(session.activate(Self.configuration(), plain)) == ["will true", "did true"])
        #expect(reasons(session.devicesChanged(headset)) == [])
    }

    @Test(arguments: [
        (SoundPort.Kind.speaker, AudioPort.Kind.builtInSpeaker, AudioPort.Kind.builtInMic),
        (.headphones, .headphones, .headsetMic), (.headset, .headphones, .headsetMic),
        (.line, .lineOut, .lineIn), (.earpiece, .builtInReceiver, .builtInMic), (.display, .HDMI, .HDMI),
        (.internalMicrophone, .builtInSpeaker, .builtInMic), (.microphone, .builtInSpeaker, .builtInMic),
        (.unknown, .builtInSpeaker, .builtInMic),
    ])
    func `the port in use tells the kind of a device of the machine`(
        _ port: SoundPort.Kind, output: AudioPort.Kind, input: AudioPort.Kind
    ) {
        var device = Self.device(Self.card)
        device.ports = [SoundPort("other", .unknown), SoundPort("port", port, isActive: true)]
        #expect(AudioPort(speaker: device).portType == output)
        #expect(AudioPort(microphone: device).portType == input)
        var usb = Self.device("alsa_output.usb-Jabra-00.analog-stereo")
        usb.ports = device.ports
        #expect(port == .display || AudioPort(speaker: usb).portType == .usbAudio)
    }
}
