import GStreamerKit
public import MediaGraph
import Synchronization

/// Measures the audio that reaches a renderer, which plays it or passes it on.
final class AudioRendererNode: RunningNode {
    private static let sampleRate = 48_000
    private static let channels = 2
    /// The level above which audio is not silent, in decibels below full scale.
    private static let silence = -60.0

    private let name: String
    private let counts = Mutex(MediaStatistics.AudioRenderer())
    private let reporter: Reporter
    private let timestamps: TimestampMap?
    private let handOver: (@Sendable (AudioChunk) -> Void)?

    /// Measures all audio that reaches `element`. Encoded audio is counted, but not decoded for its level.
    init(
        _ instance: NodeInstance, at element: String = "sink", isAudible: Bool,
        handOver: (@Sendable (AudioChunk) -> Void)? = nil
    ) {
        name = instance.name
        reporter = instance.reporter
        timestamps = instance.nearest(RTPInputNode.self)?.timestamps
        self.handOver = handOver
        counts.withLock { $0.isAudible = isAudible }
        let isEncoded = instance.plan.formats["in"]?.kind == .encodedAudio
        instance.element(element).sink.watchBuffers { buffer in self.take(buffer, isEncoded: isEncoded) }
    }

    private func take(_ buffer: borrowing PassingBuffer, isEncoded: Bool) {
        let level = isEncoded ? -120 : buffer.read(Self.level(of:)) ?? -120
        let seconds =
            isEncoded
            ? Double(buffer.duration ?? 0) / 1e9
            : Double(buffer.byteCount / (2 * Self.channels)) / Double(Self.sampleRate)
        counts.withLock { counts in
            counts.secondsRendered += seconds
            counts.secondsAboveSilence += level > Self.silence ? seconds : 0
            counts.level = level
        }
        reporter.firstFrame(name)
        guard let handOver else { return }
        handOver(
            AudioChunk(
                samples: buffer.read(Self.samples(in:)) ?? [], sampleRate: Self.sampleRate, channels: Self.channels,
                captureTime: buffer.time,
                rtpTimestamp: buffer.timestamp.flatMap { timestamps?.rtpTimestamp(at: $0) }, level: level))
    }

    private static func samples(in bytes: RawSpan) -> [Int16] {
        (0..<bytes.byteCount / 2).map { bytes.unsafeLoadUnaligned(fromByteOffset: $0 * 2, as: Int16.self) }
    }

    /// Root mean square of signed 16-bit samples in dBFS, from the mean of both channels' squares.
    static func level(of bytes: RawSpan) -> Double {
        let count = bytes.byteCount / 2
        guard count > 0 else { return -120 }
        var sum: Int64 = 0
        for index in 0..<count {
            let sample = Int64(bytes.unsafeLoadUnaligned(fromByteOffset: index * 2, as: Int16.self))
            sum += sample * sample
        }
        let mean = Double(sum) / Double(count) / (32768.0 * 32768.0)
        return LevelMeter.decibels(mean.squareRoot())
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.audioRenderers[name] = counts.withLock { $0 }
    }
}

/// Passes each audio buffer to the program.
enum SoundNode: NodeType {
    static let kind = NodeKind(
        "sound", .renderer, "Passes each audio buffer to the program", inputs: .rawAudioIn,
        binding: .audio)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { .sink(request) }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        AudioRendererNode(instance, isAudible: false, handOver: instance.bound(\.audio))
    }
}

/// Plays on the first sound system that responds. If none does, audio is measured and dropped.
enum SpeakerNode: NodeType {
    static let kind = NodeKind(
        "speaker", .renderer, "Plays audio if there is a device, and measures it in any case",
        inputs: .rawAudioIn,
        settings: [
            SettingContract(
                "system", .choice(["auto"] + SoundSystem.allCases.map(\.rawValue)), default: "auto",
                "Sound system; auto is the first one that responds, and without one, audio is only measured"),
            SettingContract(
                "device", .text, default: "",
                "Name of the output in the sound system (default: its default output)"),
        ])

    /// The buffered audio in the sound system and its device, in seconds. PulseAudio divides it between both.
    private static let buffer = 0.06
    /// How much is written at a time.
    private static let piece = 0.01
    /// The clock's allowance for the way from the last node into the sound system.
    private static let slack = 0.01
    /// PipeWire's default quantum: 1024 samples at 48 kHz.
    private static let pipeWirePiece = 0.0213

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let factory = try factory(request) else {
            var plan = NodePlan.sink(request)
            plan.notes.append("no sound system responds, so audio is measured and dropped")
            return plan
        }
        var plan = NodePlan(request.node)
        plan.addQueue(as: "queue", .init(seconds: 0.5, rule: .dropOldest), holding: nil)
        plan.add("audioconvert", as: "convert")
        plan.add("audioresample", as: "resample")
        plan.add(factory, as: "sink", sinkProperties(factory, device: request.text("device")))
        plan.notes.append("\(factory) plays")
        plan.chain()
        plan.playsByClock = true
        plan.latency = slack + (factory == "pipewiresink" ? pipeWirePiece : buffer)
        plan.notes.append(
            "audio is played \(Int((plan.latency * 1000).rounded())) ms after its latest possible arrival; that much "
                + "is buffered, so that a busy machine is not audible")
        return plan
    }

    /// The element that plays. Nil if no sound system was named and none responds.
    private static func factory(_ request: NodeRequest) throws(MediaError) -> String? {
        let environment = request.environment
        guard let system = SoundSystem(rawValue: request.text("system")) else { return environment.soundSink() }
        // PipeWire also implements PulseAudio's protocol.
        let named = ["\(system)sink"] + (system == .pipewire ? ["pulsesink"] : [])
        if let factory = named.first(where: { environment.hasElement($0) && environment.canOpen($0) }) {
            return factory
        }
        guard let installed = named.last(where: environment.hasElement) else {
            throw environment.missingElement(named[named.count - 1])
        }
        throw MediaError(
            code: MediaError.Code.speakerAbsent,
            message:
                "\"\(request.name)\" cannot play: \(installed) finds no audio output to open. Start the sound system, "
                + "or choose another with system.")
    }

    private static func sinkProperties(_ factory: String, device: String) -> [String: SettingValue] {
        var properties: [String: SettingValue] = [
            "async": false, "processing-deadline": .integer(Int(slack * 1e9)),
        ]
        if factory != "pipewiresink" {
            properties["buffer-time"] = .integer(Int(buffer * 1e6))
            properties["latency-time"] = .integer(Int(piece * 1e6))
        }
        if !device.isEmpty { properties[factory == "pipewiresink" ? "target-object" : "device"] = .text(device) }
        return properties
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let isAudible = instance.has("queue")
        return AudioRendererNode(instance, at: isAudible ? "queue" : "sink", isAudible: isAudible)
    }
}

/// Passes audio to a function.
public struct Sound: MediaNode {
    public var handle: NodeHandle

    /// - Parameter receive: called for each chunk of audio, 10 to 25 ms long, one call after the other, on a GStreamer
    ///   thread. Return soon and never block. To stop the pipeline, start a Task.
    public init(_ receive: @escaping @Sendable (AudioChunk) -> Void) {
        handle = NodeHandle(SoundNode.kind, code: .audio(receive))
    }

    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.AudioRenderer {
        get throws(MediaError) { try figures(\.audioRenderers) ?? MediaStatistics.AudioRenderer() }
    }
}

/// Plays audio if there is a device, and measures it in any case.
public struct Speaker: MediaNode {
    public var handle: NodeHandle

    /// - Parameters:
    ///   - device: the name of the output in the sound system; nil for its default output.
    ///   - system: nil for the first one that responds.
    public init(device: String? = nil, system: SoundSystem? = nil) {
        handle = NodeHandle(SpeakerNode.kind, ["device": device, "system": system?.rawValue])
    }

    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.AudioRenderer {
        get throws(MediaError) { try figures(\.audioRenderers) ?? MediaStatistics.AudioRenderer() }
    }
}

extension Node {
    /// Passes audio to the function that the program has bound to `name`.
    package static func sound(_ name: String) -> Node {
        Node(SoundNode.kind, name)
    }

    /// Plays audio if there is a device, and measures it in any case.
    package static func speaker(_ name: String = "speaker") -> Node {
        Node(SpeakerNode.kind, name)
    }
}
