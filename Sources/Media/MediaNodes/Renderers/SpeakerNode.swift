import GStreamerKit
public import MediaGraph

/// Plays on a loudspeaker of a sound system. While there is none, audio is measured and dropped.
enum SpeakerNode: NodeType {
    static let kind = NodeKind(
        "speaker", .renderer, "Plays audio while there is a device, and measures it in any case",
        inputs: .rawAudioIn,
        settings: [
            SettingContract(
                "system", .choice(["auto"] + SoundSystem.allCases.map(\.rawValue)), default: "auto",
                "Sound system; auto is the first one that responds"),
            SettingContract(
                "device", .text, default: "",
                "A name of 'connectlive devices', such as serial:7C3F, or one of the sound system (default: its default output)"
            ),
            SettingContract(
                "away", Speaker.Away.settingDomain, default: "drop",
                "Audio while the loudspeaker is away: drop continues without it; end ends the node with an error"),
            SettingContract(
                "buffer", .integer(20...1000), default: 60, unit: "ms",
                "Audio in the sound system and its device. Less is heard sooner, and more survives a busy machine. Not for pipewiresink"
            ),
            AudioRole.contract,
        ])

    /// How much is written at a time.
    private static let piece = 0.01
    /// The clock's allowance for the way from the last node into the sound system.
    private static let slack = 0.01
    /// PipeWire's default quantum: 1024 samples at 48 kHz.
    private static let pipeWirePiece = 0.0213
    /// How much audio may wait for the device.
    static let waiting = QueuePlan.Limits(seconds: 0.5, rule: .dropOldest)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        var device = DevicePlan(name: SoundName.of(request), wish: "\(MediaFormat.rawAudio)")
        var delay = buffer(request)
        do throws(MediaError) {
            let found = try Choice(request)
            device.take(found.plan)
            delay = found.delay
            plan.notes = ["\(found.factory) plays"]
        } catch {
            guard error.code == MediaError.Code.speakerAbsent, mayWait(request) else { throw error }
            device.absence = error.message
            plan.notes = [device.waiting ?? "", "audio is measured and dropped until then"]
        }
        // It takes all audio at once, however late its device plays it, and has the device's part in the latency.
        plan.add(
            "fakesink", as: "sink",
            NodePlan.sinkProperties.merging([
                "sync": true, "ts-offset": .integer(-3_600_000_000_000), "render-delay": .integer(Int(delay * 1e9)),
                "processing-deadline": .integer(Int(slack * 1e9)),
            ]) { $1 })
        plan.chain()
        plan.device = device
        plan.playsByClock = true
        plan.latency = slack + delay
        plan.notes.append(
            "audio is played \(Int((plan.latency * 1000).rounded())) ms after its latest possible arrival; that much "
                + "is buffered, so that a busy machine is not audible")
        return plan
    }

    /// Whether the node waits for a loudspeaker that is not there. One that is optional and has a name is left out.
    private static func mayWait(_ request: NodeRequest) -> Bool {
        let isNamed = SoundName.of(request) != SoundName.any || request.text("system") != "auto"
        return request.text("away") != "end" && !(isNamed && request.node.isOptional)
    }

    /// The buffered audio in the sound system and its device, in seconds. PulseAudio divides it between both.
    private static func buffer(_ request: NodeRequest) -> Double { Double(request.integer("buffer")) / 1000 }

    /// The elements that play on a loudspeaker that is there.
    struct Choice {
        let former: FormerSound
        let factory: String
        /// Its name in the sound system. Nil for the default output.
        let device: String?
        /// The buffered audio, in seconds.
        let delay: Double
        let plan: NodePlan

        /// - Throws: `speaker.absent`, `element.missing`.
        init(_ request: NodeRequest, after former: FormerSound = FormerSound()) throws(MediaError) {
            let named = SoundSystem(rawValue: request.text("system")) ?? former.system
            let found = try SoundRole.loudspeaker.find(
                SoundName.of(request), of: named, after: former.device, on: request.environment)
            factory = try SpeakerNode.factory(request, of: named ?? found?.system, isNamed: found != nil)
            let system = SoundSystem.allCases.first { [factory] in "\($0)sink" == factory } ?? .pulse
            self.former = FormerSound(system: system, device: found?.device)
            device = found?.identifier
            delay = factory == "pipewiresink" ? pipeWirePiece : SpeakerNode.buffer(request)
            try request.environment.check(device, of: system, request)
            var plan = NodePlan(request.node)
            PushQueue.plan(&plan, caps: RawFormat.audio, SpeakerNode.waiting, holding: .rawAudio)
            plan.append("audioconvert", as: "convert")
            plan.append("audioresample", as: "resample")
            plan.append(factory, as: "sink", SpeakerNode.properties(factory, device: device, request))
            self.plan = plan
        }
    }

    /// The element that plays.
    private static func factory(
        _ request: NodeRequest, of system: SoundSystem?, isNamed: Bool
    ) throws(MediaError) -> String {
        let environment = request.environment
        guard let system else {
            if let factory = environment.soundSink() { return factory }
            throw absent("no sound system responds. Start one, or plug in a loudspeaker.", request)
        }
        // PipeWire also implements PulseAudio's protocol.
        let named = ["\(system)sink"] + (system == .pipewire ? ["pulsesink"] : [])
        // ALSA's default device says nothing about another one.
        func isUsable(_ factory: String) -> Bool {
            environment.hasElement(factory) && (system == .alsa && isNamed || environment.canOpen(factory))
        }
        if let factory = named.first(where: isUsable) { return factory }
        guard let installed = named.last(where: environment.hasElement) else {
            throw environment.missingElement(named[named.count - 1])
        }
        throw absent(
            "\(installed) finds no audio output to open. Start the sound system, or choose another with system.",
            request)
    }

    fileprivate static func absent(_ reason: String, _ settings: NodeRequest) -> MediaError {
        MediaError(code: MediaError.Code.speakerAbsent, message: "\"\(settings.name)\" cannot play: \(reason)")
    }

    private static func properties(
        _ factory: String, device: String?, _ request: NodeRequest
    ) -> [String: SettingValue] {
        var properties = AudioRole.of(request).properties(of: factory)
        properties["async"] = false
        properties["processing-deadline"] = .integer(Int(slack * 1e9))
        if factory != "pipewiresink" {
            properties["buffer-time"] = .integer(Int(buffer(request) * 1e6))
            properties["latency-time"] = .integer(Int(piece * 1e6))
        }
        if let device { properties[factory == "pipewiresink" ? "target-object" : "device"] = .text(device) }
        return properties
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        KeptSpeaker(instance)
    }

    // MARK: Errors

    /// The error for a failure of the elements of a loudspeaker.
    static func explain(
        _ failure: PipelineFailure, of device: String, _ system: SoundSystem?, isFed: Bool
    ) -> MediaError {
        switch failure.kind {
        case .busy:
            MediaError(
                code: MediaError.Code.speakerBusy,
                message: "Another program uses \(words(device)). Close that program.")
        case _ where isFed: lost(device, system, within: MicrophoneNode.serverEnd)
        default:
            MediaError(
                code: MediaError.Code.speakerAbsent,
                message: "\(words(device).capitalizedFirst) cannot be opened. Plug it in, or start the sound server.",
                cause: failure.message)
        }
    }

    /// The error for a loudspeaker that takes nothing any more. Names the sound server if that has ended.
    static func lost(_ device: String, _ system: SoundSystem?, within seconds: Double = 0) -> MediaError {
        MediaError(
            code: MediaError.Code.speakerLost,
            message: system?.ending(
                with: device == SoundName.any ? "loudspeaker" : "loudspeaker \(device)", within: seconds)
                ?? "\(words(device).capitalizedFirst) stopped playing. Check that it is plugged in, and that the sound "
                + "server runs.")
    }

    private static func words(_ device: String) -> String {
        device == SoundName.any ? "the loudspeaker" : "the loudspeaker \(device)"
    }
}

extension String {
    fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

extension PlanEnvironment {
    /// Checks that a sound system has an output.
    ///
    /// - Throws: `speaker.absent`.
    fileprivate func check(_ device: String?, of system: SoundSystem, _ request: NodeRequest) throws(MediaError) {
        guard let device, let speakers = soundDevices(of: system)?.speakers else { return }
        // The server's own aliases, such as @DEFAULT_SINK@, and ALSA's configured names are in no list.
        guard system == .pulse, !device.hasPrefix("@"), !speakers.contains(where: { $0.identifier == device }) else {
            return
        }
        let others = speakers.map(\.lastingName).joined(separator: " or ")
        throw SpeakerNode.absent(
            "the sound server has no output \(device). Plug it in, or use \(others.isEmpty ? "another" : others).",
            request)
    }
}

/// Plays audio while there is a device, and measures it in any case.
public struct Speaker: MediaNode {
    /// The audio while the loudspeaker is away.
    public enum Away: String, SettingChoice {
        /// It is measured and dropped, in real time.
        case drop
        /// None: the node ends with an error.
        case end
    }

    public var handle: NodeHandle

    /// A loudspeaker. Without a name, that of the sound system.
    ///
    /// - Parameters:
    ///   - device: a name of `Devices`, or one of the sound system; nil for its default output.
    ///   - system: nil for the first one that responds.
    ///   - buffer: how much audio the sound system has, in milliseconds.
    public init(
        device: String? = nil, system: SoundSystem? = nil, away: Away? = nil, buffer: Int? = nil, role: AudioRole? = nil
    ) {
        handle = NodeHandle(
            SpeakerNode.kind,
            ["device": device, "system": system?.rawValue, "away": away, "buffer": buffer, "role": role])
    }

    /// The audio that was played so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.AudioRenderer {
        get throws(MediaError) { try figures(\.audioRenderers) ?? MediaStatistics.AudioRenderer() }
    }

    /// The state of the device.
    ///
    /// - Throws: `node.not-running`.
    public var status: SourceStatus? { get throws(MediaError) { try figures(\.sources) } }
}

extension Node {
    /// Plays audio while there is a device, and measures it in any case.
    package static func speaker(
        _ name: String = "speaker", device: String? = nil, away: String? = nil, buffer: Int? = nil,
        role: AudioRole? = nil
    ) -> Node {
        Node(SpeakerNode.kind, name, ["device": device, "away": away, "buffer": buffer, "role": role])
    }
}
