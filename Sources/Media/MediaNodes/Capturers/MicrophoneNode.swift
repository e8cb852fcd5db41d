import GStreamerKit
public import MediaGraph
import Synchronization

/// A microphone of PulseAudio (or PipeWire as its replacement), PipeWire itself or ALSA.
enum MicrophoneNode: NodeType {
    /// Timeout for a sound system's first audio, in seconds.
    private static let firstAudioTimeout = 3.0
    /// The length of an audio buffer, in seconds.
    private static let piece = 0.01
    /// How many seconds of audio may wait. Usually none waits; a reader that gets no processor time for as long loses
    /// nothing.
    private static let memory = 0.2
    /// After a failure, how long to wait for the end of its sound server, in seconds.
    static let serverEnd = 0.05
    /// PipeWire's default buffer: 1024 samples at 48 kHz.
    private static let pipeWirePiece = 0.0213
    private static let pipeWirePieceNanoseconds = UInt64(pipeWirePiece * 1e9)

    static let kind = NodeKind(
        "microphone", .capturer, "A microphone of PulseAudio, PipeWire or ALSA",
        outputs: [Port("audio", [.rawAudio])],
        settings: [
            SettingContract(
                "device", .text, default: "auto",
                "A name of 'connectlive devices', such as serial:7C3F, one of the sound system, or auto for its default"
            ),
            SettingContract(
                "system", .choice(["auto"] + SoundSystem.allCases.map(\.rawValue)), default: "auto",
                "The sound system; auto is the first one that responds"),
            SettingContract(
                "away", Microphone.Away.settingDomain, default: "silence",
                "Output while the microphone is away: silence; end ends the node with an error"),
            SettingContract(
                "bluetooth", .flag, default: true, "Whether an auto microphone may be a Bluetooth one"),
            AudioRole.contract,
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        SourceHead.plan(&plan, .rawAudio, caps: RawFormat.audio, latency: piece)
        plan.setOutput("audio", .rawAudio)
        var device = DevicePlan(name: SoundName.of(request), wish: "\(MediaFormat.rawAudio)")
        do throws(MediaError) {
            let bound = try Choice(request).plan
            device.take(bound)
            (plan.latency, plan.notes) = (bound.latency, bound.notes)
        } catch {
            // One that is optional is left out.
            guard isAway(error), !request.node.isOptional, request.text("away") != "end" else { throw error }
            device.absence = error.message
            // The longest of all sound systems.
            (plan.latency, plan.notes) = (pipeWirePiece, [device.waiting ?? ""])
        }
        plan.allowances["audio"] = plan.latency
        plan.device = device
        return plan
    }

    /// Whether an error says that a microphone is not there, or in use, and may be there later.
    static func isAway(_ error: MediaError) -> Bool {
        error.code == MediaError.Code.microphoneAbsent || error.code == MediaError.Code.microphoneBusy
    }

    /// The elements of a microphone that is there.
    struct Choice {
        let former: FormerSound
        /// Its name in the sound system. Nil for the default microphone.
        let device: String?
        let plan: NodePlan

        /// - Throws: `microphone.absent`, `microphone.busy`, `element.missing`.
        init(_ request: NodeRequest, after former: FormerSound = FormerSound()) throws(MediaError) {
            let name = SoundName.of(request)
            let named = SoundSystem(rawValue: request.text("system")) ?? former.system
            var found = try SoundRole.microphone.find(
                name, of: named, after: former.device, on: request.environment)
            if found == nil { found = try Self.wired(request, named) }
            device = found?.identifier
            let system: SoundSystem
            let reason: String
            if let named {
                (system, reason) = (named, "it was requested")
            } else if let told = found?.system {
                (system, reason) = (told, told == .alsa ? "the name belongs to ALSA" : "it has this microphone")
            } else {
                guard let first = request.environment.soundSource() else { throw absent(name) }
                system = SoundSystem.allCases.first { "\($0)src" == first } ?? .pulse
                reason = "the first sound system that responds"
            }
            self.former = FormerSound(system: system, device: found?.device)
            let factory = "\(system)src"
            try request.environment.require(factory)
            try request.environment.checkMicrophone(device, of: system)
            var plan = NodePlan(request.node)
            plan.add(
                factory, as: "source",
                properties(device, of: system).merging(AudioRole.of(request).properties(of: factory)) { $1 })
            plan.addSoundConversion()
            plan.link("source", "convert")
            plan.setOutput("audio", .rawAudio)
            let which = found == nil ? "the default microphone" : "the microphone \(found?.device?.name ?? name)"
            plan.notes.append("\(which) through \(factory): \(reason)")
            plan.latency = system == .pipewire ? pipeWirePiece : piece
            plan.allowances["audio"] = plan.latency
            self.plan = plan
        }

        /// The microphone instead of a default one that is a Bluetooth one, if that may not be used.
        private static func wired(_ request: NodeRequest, _ system: SoundSystem?) throws(MediaError) -> FoundSound? {
            guard !request.flag("bluetooth"),
                let devices = request.environment.soundDevices(of: system),
                devices.usualMicrophone(mayBeBluetooth: true)?.isBluetooth == true
            else { return nil }
            guard let other = devices.usualMicrophone(mayBeBluetooth: false) else {
                throw MediaError(
                    code: MediaError.Code.microphoneAbsent,
                    message: "There are only Bluetooth microphones, which \"\(request.name)\" may not use. Plug in "
                        + "another one, or set bluetooth to true.")
            }
            return FoundSound(system: devices.system, identifier: other.identifier, device: other)
        }
    }

    private static func properties(_ device: String?, of system: SoundSystem) -> [String: SettingValue] {
        switch system {
        case .pipewire:
            return device.map { ScreenSearch.target($0) } ?? ["do-timestamp": true]
        case .pulse, .alsa:
            var properties: [String: SettingValue] = [
                "buffer-time": .integer(Int(memory * 1e6)), "latency-time": .integer(Int(piece * 1e6)),
                "provide-clock": false,
            ]
            if let device { properties["device"] = .text(device) }
            return properties
        }
    }

    /// Checks whether a microphone delivers audio, before anything runs.
    static func check(_ device: String?, of system: SoundSystem) throws(MediaError) {
        let answer = try SourceProbe.ask(
            "\(system)src", properties(device, of: system), media: "audio/x-raw",
            converters: ["audioconvert", "audioresample"], wished: RawFormat.audio, seconds: firstAudioTimeout)
        switch answer {
        case .format: return
        case .failed(let failure) where failure.kind == .busy: throw busy(device ?? "auto")
        case .failed, .silent: throw absent(device ?? "auto")
        }
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        KeptMicrophone(instance)
    }

    /// Corrects the timestamps of a sound system's source in a pipeline. `onAudio` is called for each buffer.
    static func stamp(_ source: Element, of pipeline: Pipeline, onAudio: @escaping @Sendable () -> Void) {
        let isStampedAtItsEnd = source.factory == "pipewiresrc"
        let clock = Mutex(SoundClock())
        let pipeline = WeakBox(pipeline)
        source.source.onBuffer { buffer in
            onAudio()
            if !isStampedAtItsEnd, let stamp = buffer.timestamp, let time = buffer.runningTime,
                let duration = buffer.duration, let now = pipeline.value?.runningTime
            {
                let right = clock.withLock { $0.time(ofSoundAt: Int(time), lasting: Int(duration), now: Int(now)) }
                guard let right else { return .drop }
                if right != Int(time) { buffer.retime(to: UInt64(max(0, Int(stamp) + right - Int(time)))) }
            }
            // pipewiresrc stamps the end of a buffer, not its beginning.
            if isStampedAtItsEnd, let time = buffer.timestamp {
                buffer.retime(to: time - min(time, buffer.duration ?? pipeWirePieceNanoseconds))
            }
            return .pass
        }
    }

    /// The error for a failure of the elements of a microphone.
    static func explain(
        _ failure: PipelineFailure, of device: String, _ system: SoundSystem?, isFed: Bool
    ) -> MediaError {
        switch failure.kind {
        case .busy: busy(device)
        case .notFound, .cannotOpen: absent(device)
        default: isFed ? lost(device, system, within: serverEnd) : absent(device)
        }
    }

    private static func busy(_ device: String) -> MediaError {
        MediaError(
            code: MediaError.Code.microphoneBusy,
            message: "Another program uses the microphone \(device). Close that program.")
    }

    static func absent(_ device: String) -> MediaError {
        // For ALSA's default microphone, a missing device and a busy one look the same.
        let what =
            device == "auto"
            ? "No microphone can be opened. Plug one in, close the program that uses it"
            : "The microphone \(device) does not exist. Plug one in"
        return MediaError(
            code: MediaError.Code.microphoneAbsent, message: "\(what), start the sound server, or leave audio out.")
    }

    /// The error for a microphone that delivers nothing any more. Names the sound server if that has ended.
    static func lost(_ device: String, _ system: SoundSystem?, within seconds: Double = 0) -> MediaError {
        let what = device == "auto" ? "microphone" : "microphone \(device)"
        return MediaError(
            code: MediaError.Code.microphoneLost,
            message: system?.ending(with: what, within: seconds)
                ?? "The \(what) stopped delivering audio. Check that it is plugged in, and that the sound server runs.")
    }
}

/// A microphone of PulseAudio, PipeWire or ALSA.
public struct Microphone: MediaNode {
    /// The output while the microphone is away.
    public enum Away: String, SettingChoice {
        /// Silence, until the device returns.
        case silence
        /// Nothing: the node ends with an error.
        case end
    }

    public var handle: NodeHandle

    /// A microphone. Without a name, that of the sound system.
    ///
    /// - Parameters:
    ///   - device: a name as listed by `Devices`, or `auto` for the default.
    ///   - system: nil for the first one that responds.
    ///   - bluetooth: whether the default may be a Bluetooth microphone.
    public init(
        device: String? = nil, system: SoundSystem? = nil, away: Away? = nil, bluetooth: Bool? = nil,
        role: AudioRole? = nil
    ) {
        handle = NodeHandle(
            MicrophoneNode.kind,
            ["device": device, "system": system?.rawValue, "away": away, "bluetooth": bluetooth, "role": role])
    }

    /// The state of the device. Nil before the node runs.
    ///
    /// - Throws: `node.not-running`.
    public var status: SourceStatus? { get throws(MediaError) { try figures(\.sources) } }
}

extension Node {
    /// A microphone. `device` is a name as listed by `Devices`, or `auto` for the default.
    package static func microphone(
        _ name: String = "microphone", device: String? = nil, bluetooth: Bool? = nil, role: AudioRole? = nil
    ) -> Node {
        Node(MicrophoneNode.kind, name, ["device": device, "bluetooth": bluetooth, "role": role])
    }
}
