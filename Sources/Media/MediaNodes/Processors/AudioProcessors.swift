import GStreamerKit
import Glibc
public import MediaGraph
import Synchronization

/// Measures the level of audio without changing it.
package final class LevelNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "level", .processor, "Measures the level of each audio channel, for the statistics",
        inputs: .rawAudioIn, outputs: .rawAudioOut,
        settings: [
            SettingContract(
                "interval", .number(0.01...10), default: 0.1, unit: "s",
                "Length of the audio that one value covers")
        ])

    private let meter: Mutex<LevelMeter>

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFilter(RawFormat.audio, as: "sound")
        plan.chain(to: .rawAudio)
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let node = LevelNode(interval: instance.number("interval"))
        instance.element("sound").sink.watchBuffers { buffer in
            _ = buffer.read { bytes in node.meter.withLock { $0.read(bytes) } }
        }
        return node
    }

    private init(interval: Double) {
        meter = Mutex(LevelMeter(interval: interval))
    }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.levels[name] = meter.withLock { $0.channels }
    }
}

/// Levels of interleaved signed 16-bit stereo at 48 kHz, interval by interval.
struct LevelMeter: Sendable {
    private struct Sums {
        var squares: Int64 = 0
        var peak: Int32 = 0
    }

    private static let channelCount = 2
    private static let fullScale = 32_768.0

    private let momentsPerInterval: Int
    private var moments = 0
    private var sums = [Sums](repeating: Sums(), count: channelCount)

    /// The levels of the last complete interval, left before right. Silence before the first.
    private(set) var channels = [MediaStatistics.ChannelLevel](repeating: .silence, count: channelCount)

    /// `interval` is in seconds.
    init(interval: Double) {
        momentsPerInterval = max(1, Int(interval * 48_000))
    }

    mutating func read(_ bytes: RawSpan) {
        for offset in stride(from: 0, through: bytes.byteCount - 2 * Self.channelCount, by: 2 * Self.channelCount) {
            for channel in 0..<Self.channelCount {
                let sample = Int32(bytes.unsafeLoadUnaligned(fromByteOffset: offset + 2 * channel, as: Int16.self))
                sums[channel].squares += Int64(sample * sample)
                sums[channel].peak = max(sums[channel].peak, abs(sample))
            }
            moments += 1
            if moments == momentsPerInterval { finishInterval() }
        }
    }

    private mutating func finishInterval() {
        for channel in 0..<Self.channelCount {
            let mean = Double(sums[channel].squares) / Double(moments) / (Self.fullScale * Self.fullScale)
            channels[channel] = MediaStatistics.ChannelLevel(
                rootMeanSquare: Self.decibels(mean.squareRoot()),
                peak: Self.decibels(Double(sums[channel].peak) / Self.fullScale))
            sums[channel] = Sums()
        }
        moments = 0
    }

    static func decibels(_ amplitude: Double) -> Double {
        amplitude > 1e-6 ? 20 * log10(amplitude) : -120
    }
}

/// Changes the volume. Both settings are properties of the element, which the runner sets while audio passes.
package enum VolumeNode: NodeType {
    package static let kind = NodeKind(
        "volume", .processor, "Changes the volume of audio", inputs: .rawAudioIn, outputs: .rawAudioOut,
        settings: [
            SettingContract(
                "volume", .number(0...10), default: 1, isChangeable: true,
                "Factor for samples: 0 is silence, 1 is unchanged, 2 is 6 dB louder"),
            SettingContract("mute", .flag, default: false, isChangeable: true, "Whether to mute the audio"),
        ])

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add(
            "volume", as: "volume",
            ["volume": .number(request.number("volume")), "mute": .flag(request.flag("mute"))])
        plan.chain(to: .rawAudio)
        return plan
    }
}

/// Mixes audio. Each input has a queue with its own thread. If one delivers nothing, the others continue.
package final class AudioMixerNode: NodeType, SoundHolding {
    package static let kind = NodeKind(
        "audio-mixer", .processor, "Mixes audio; an input that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawAudio], isRepeated: true)], outputs: .rawAudioOut,
        settings: [
            SettingContract(
                "latency", .integer(0...1000), default: 20, unit: "ms",
                "Longest delay of an input after the first one; at least the longest buffer"),
            SettingContract(
                "waiting", .integer(50...5000), default: 200, unit: "ms",
                "Audio of an input that may wait because it is ahead of the others; older audio is dropped"),
        ])

    /// The length of an output buffer, in seconds.
    private static let block = 0.01
    /// In milliseconds. Received audio that arrives unevenly waits for so much longer.
    private static let longestHold = RTPInputNode.longestAudioLatency - RTPInputNode.audioLatency

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("audiomixer")
        let wait = request.integer("latency")
        var plan = NodePlan(request.node)
        plan.add(
            "audiomixer", as: "mix",
            [
                "latency": .integer(wait * 1_000_000), "start-time-selection": "first",
                "output-buffer-duration": .integer(Int(block * 1e9)),
                // By default, a pause of less than a second is made up for a second later, in the middle of the audio.
                "discont-wait": 0,
            ])
        let waiting = QueuePlan.Limits(
            seconds: Double(request.integer("waiting") + longestHold) / 1000, rule: .dropOldest)
        plan.mix(request.inputs, waiting, to: .rawAudio, RawFormat.audio)
        plan.latency = block
        plan.allowances["out"] = Double(wait) / 1000 + block
        plan.notes.append(
            "\(request.inputs.count) inputs are mixed; a late one delays the others by at most \(wait) ms"
        )
        return plan
    }

    private let mix: Element
    /// Whether an input drops its audio, by its port.
    private let skips: [String: AtomicBool]
    private let holds: [SoundHold]

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        AudioMixerNode(instance)
    }

    private init(_ instance: NodeInstance) {
        mix = instance.element("mix")
        let ports = instance.plan.inputs.keys
        skips = ports.reduce(into: [:]) { $0[$1] = AtomicBool() }
        holds = ports.map { SoundHold(instance, $0, at: instance.element($0).sink) }
        for (port, isSkipping) in skips {
            instance.element(port).source.onBuffer { buffer in
                guard isSkipping.value else { return .pass }
                guard buffer.followsGap else { return .drop }
                isSkipping.lower()
                return .pass
            }
        }
    }

    /// Drops the audio that waits at an input, and the next up to one that is marked as the first after a gap.
    func skip(_ input: Int) { skips["in\(input)"]?.raise() }

    /// Sets the volume of an input, with the next 10 ms of the mix. Does nothing without an input of this number.
    ///
    /// - Parameter factor: for samples, 0...10: 0 is silence, 1 is unchanged.
    func setVolume(_ factor: Double, isMuted: Bool, of input: Int) {
        guard let pad = mix.pad("sink_\(input)") else { return }
        try? pad.set("volume", .number(factor))
        try? pad.set("mute", .flag(isMuted))
    }
}

/// Measures the level of each audio channel.
public struct Level: MediaNode {
    public var handle: NodeHandle

    /// A meter for all channels.
    ///
    /// - Parameter interval: the length of the audio that one value covers.
    public init(interval: Duration? = nil) {
        handle = NodeHandle(LevelNode.kind, ["interval": interval?.inSeconds])
    }

    /// The levels of the last interval, left before right; empty before it.
    ///
    /// - Throws: `node.not-running`.
    public var levels: [MediaStatistics.ChannelLevel] { get throws(MediaError) { try figures(\.levels) ?? [] } }
}

/// Changes the volume of audio.
public struct Volume: MediaNode {
    public var handle: NodeHandle

    /// A node that leaves audio unchanged, unless a factor is given.
    ///
    /// - Parameter factor: for samples: 0 is silence, 1 is unchanged, 2 is 6 dB louder.
    public init(_ factor: Double? = nil, isMuted: Bool? = nil) {
        handle = NodeHandle(VolumeNode.kind, ["volume": factor, "mute": isMuted])
    }

    /// Changes the factor for samples.
    ///
    /// - Throws: `graph.invalid` for a factor out of range; `node.not-running`.
    public func setFactor(_ factor: Double) async throws(MediaError) { try await change("volume", to: factor) }
    /// Turns the audio into silence, or back. Throws like `setFactor`.
    public func setMuted(_ isMuted: Bool) async throws(MediaError) { try await change("mute", to: isMuted) }
}

/// Mixes audio. An input that stalls or ends does not stop the others.
public struct AudioMixer: MediaNode {
    public var handle: NodeHandle

    /// A mixer, whose inputs are added by links.
    ///
    /// - Parameters:
    ///   - latency: the longest delay of an input after the first one.
    ///   - waiting: the audio of an input that may wait because it is ahead of the others.
    public init(latency: Duration? = nil, waiting: Duration? = nil) {
        handle = NodeHandle(
            AudioMixerNode.kind, ["latency": latency?.inMilliseconds, "waiting": waiting?.inMilliseconds])
    }

    /// An input by its number, from 1. Inputs without a number are filled in the order of the links.
    public func input(_ number: Int) -> NodeInput { input(named: "in\(number)") }
}

extension Node {
    /// Mixes audio. `waiting` is in milliseconds.
    package static func audioMixer(_ name: String = "audio-mixer", waiting: Int? = nil) -> Node {
        Node(AudioMixerNode.kind, name, ["waiting": waiting])
    }
}
