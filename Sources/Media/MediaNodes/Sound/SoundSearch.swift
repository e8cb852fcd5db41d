import Cameras
import GStreamerKit
import MediaGraph

/// The microphones and loudspeakers of this machine, and those that names lead to.
enum SoundSearch {
    enum Answer {
        case devices(SoundDevices)
        /// No sound system has any.
        case none
        /// The sound server hangs.
        case late
    }

    /// The devices of a sound system, or of the first one that has any. Nil without any, or if the sound server hangs.
    static func devices(of system: SoundSystem?) -> SoundDevices? {
        if case .devices(let found) = search(system) { found } else { nil }
    }

    /// Looks for devices. Blocks for `AudioSystem.timeout` at most.
    static func search(_ system: SoundSystem?) -> Answer {
        switch system {
        case nil:
            // A server that hangs has the cards of ALSA.
            let served = search(.pulse)
            if case .none = served { return search(.alsa) }
            return served
        // PipeWire lists its devices to clients of PulseAudio, with the names of its nodes.
        case .pulse, .pipewire: return ofServer(system ?? .pulse)
        case .alsa: return ofALSA.map(Answer.devices) ?? .none
        }
    }

    private static func ofServer(_ system: SoundSystem) -> Answer {
        guard let found = DeviceProbe.soundDevices() else { return .late }
        guard !found.sources.isEmpty || !found.sinks.isEmpty else { return .none }
        return .devices(devices(of: system, found))
    }

    /// The devices that a sound server lists, with their names.
    static func devices(of system: SoundSystem, _ found: DeviceProbe.SoundDevices) -> SoundDevices {
        SoundDevices(system, microphones: named(found.sources), speakers: named(found.sinks))
    }

    private static func named(_ devices: [DeviceProbe.SoundDevice]) -> [AudioDevice] {
        let places = SoundPlace.all(
            devices.map {
                .init(
                    $0.identifier, model: $0.product ?? $0.title, card: $0.card, serial: $0.serial, busPath: $0.busPath)
            })
        return zip(devices, places).map { device, place in
            var found = AudioDevice(place, title: device.title.cleaned, isDefault: device.isDefault)
            found.ports = device.ports
            return found
        }
    }

    private static var ofALSA: SoundDevices? {
        func devices(playing: Bool) -> [AudioDevice] {
            SoundPlace.ofALSA(playing: playing).map { AudioDevice($0, title: $0.model, isDefault: false) }
        }
        let found = SoundDevices(.alsa, microphones: devices(playing: false), speakers: devices(playing: true))
        return found.microphones.isEmpty && found.speakers.isEmpty ? nil : found
    }
}

extension AudioDevice {
    fileprivate init(_ place: SoundPlace, title: String, isDefault: Bool) {
        self.init(
            identifier: place.identifier, name: title, isDefault: isDefault, lastingName: place.name,
            otherNames: place.otherNames)
    }
}

/// Microphones or loudspeakers.
enum SoundRole: String {
    case microphone
    case loudspeaker

    func devices(of list: SoundDevices) -> [AudioDevice] {
        self == .microphone ? list.microphones : list.speakers
    }

    private var absentCode: String {
        self == .microphone ? MediaError.Code.microphoneAbsent : MediaError.Code.speakerAbsent
    }

    /// The device that a `device` setting names, with its name in the sound system. Nil for the default device.
    ///
    /// - Parameters:
    ///   - system: nil for any.
    ///   - former: the device that the name led to before. It stays the same when a second one with its number is plugged in.
    /// - Throws: `microphone.absent` or `speaker.absent` for a lasting name that leads to no device, or to several;
    ///   `camera.binding` for an unreadable file with names.
    func find(
        _ name: String, of system: SoundSystem?, after former: AudioDevice?, on machine: any PlanEnvironment
    ) throws(MediaError) -> FoundSound? {
        guard name != SoundName.any else { return nil }
        // ALSA's names have these prefixes. The sound server has all others.
        if ["hw:", "plughw:", "default:", "sysdefault:"].contains(where: name.hasPrefix) {
            return FoundSound(system: .alsa, identifier: name)
        }
        let wish = try CameraSystem.machine.bound(name)
        guard SoundPlace.isLasting(wish) else { return FoundSound(identifier: wish) }
        let there = machine.soundDevices(of: system)
        guard let there else {
            throw MediaError(
                code: absentCode,
                message:
                    "The \(rawValue) \(wish) cannot be found: no sound system lists any device. Plug it in, or start "
                    + "the sound server again.")
        }
        let device = try find(wish, among: devices(of: there), after: former)
        return FoundSound(system: there.system, identifier: device.identifier, device: device)
    }

    /// The device with a lasting name.
    func find(
        _ wish: String, among devices: [AudioDevice], after former: AudioDevice? = nil
    ) throws(MediaError) -> AudioDevice {
        if let exact = devices.first(where: { $0.lastingName == wish }) { return exact }
        let matches = devices.filter { $0.otherNames.contains(wish) }
        if matches.count == 1 { return matches[0] }
        if let port = former?.port, let same = matches.first(where: { $0.port == port }) { return same }
        let others = (matches.isEmpty ? devices : matches).map(\.lastingName)
        let reason = matches.isEmpty ? "is not plugged in" : "is a name of several \(rawValue)s"
        let advice = others.isEmpty ? "Plug it in." : "Use \(others.joined(separator: " or "))."
        throw MediaError(code: absentCode, message: "The \(rawValue) \(wish) \(reason). \(advice)")
    }
}

/// The device that a name leads to.
struct FoundSound {
    /// Nil if the name does not tell it.
    var system: SoundSystem?
    var identifier: String
    /// Nil for a name of the sound system itself.
    var device: AudioDevice?
}

/// The device that a node had open last.
struct FormerSound {
    /// The sound system stays the same from the first opening on: while a sound server restarts, its cards belong to no other.
    var system: SoundSystem?
    var device: AudioDevice?

    init(system: SoundSystem? = nil, device: AudioDevice? = nil) { (self.system, self.device) = (system, device) }

    /// That of a plan. A card of ALSA binds nothing until it is open: a sound server that begins may take it.
    init(_ plan: DevicePlan?) {
        let factories = plan?.elements.map(\.factory) ?? []
        system = [.pulse, .pipewire].first { system in factories.contains { SoundSystem($0) == system } }
    }
}

extension SoundSystem {
    /// The one that an element opens. Nil for other elements.
    init?(_ factory: String) {
        guard let system = Self.allCases.first(where: { ["\($0)src", "\($0)sink"].contains(factory) }) else {
            return nil
        }
        self = system
    }
}

extension AudioDevice {
    /// Its USB port.
    fileprivate var port: String? { otherNames.first { $0.hasPrefix("usb-") } }
}

extension SoundSystem {
    /// The message for a device whose sound server has ended. Nil if the server accepts connections, or is not on this machine.
    ///
    /// - Parameter seconds: how long to wait for the end of a server that may be ending.
    func ending(with device: String, within seconds: Double) -> String? {
        guard self != .alsa, AudioSystem.serverHasEnded(isPipeWire: self == .pipewire, within: seconds) else {
            return nil
        }
        return "The sound server has ended, and the \(device) with it. Start the sound server again."
    }
}

/// The `device` setting of microphones and loudspeakers.
enum SoundName {
    /// The default device of the sound system.
    static let any = "auto"

    /// An empty name comes from an unset variable.
    static func of(_ settings: some NodeSettings) -> String {
        let device = settings.text("device")
        return device.isEmpty ? any : device
    }
}
