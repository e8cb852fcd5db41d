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
    private let state = Mutex((counts: MediaStatistics.AudioRenderer(), last: MediaTime?.none))
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
        state.withLock { $0.counts.isAudible = isAudible }
        let isEncoded = instance.plan.formats["in"]?.kind == .encodedAudio
        instance.element(element).sink.watchBuffers { buffer in self.take(buffer, isEncoded: isEncoded) }
    }

    private func take(_ buffer: borrowing PassingBuffer, isEncoded: Bool) {
        let power = isEncoded ? 0 : buffer.read(Self.power(of:)) ?? 0
        let level = LevelMeter.decibels(power.squareRoot())
        let seconds =
            isEncoded
            ? Double(buffer.duration ?? 0) / 1e9
            : Self.seconds(ofBytes: buffer.byteCount)
        state.withLock { state in
            state.counts.secondsRendered += seconds
            state.counts.secondsAboveSilence += level > Self.silence ? seconds : 0
            state.counts.level = level
            state.counts.energy += power * seconds
            state.last = GStreamer.now
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

    /// The length of raw audio.
    static func seconds(ofBytes count: Int) -> Double { Double(count / (2 * channels)) / Double(sampleRate) }

    /// The mean square of signed 16-bit samples of all channels, 1 at full scale.
    static func power(of bytes: RawSpan) -> Double {
        let count = bytes.byteCount / 2
        guard count > 0 else { return 0 }
        var sum: Int64 = 0
        for index in 0..<count {
            let sample = Int64(bytes.unsafeLoadUnaligned(fromByteOffset: index * 2, as: Int16.self))
            sum += sample * sample
        }
        return Double(sum) / Double(count) / (32768.0 * 32768.0)
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        var (counts, last) = state.withLock { $0 }
        counts.secondsSinceChunk = last.map { GStreamer.now.seconds(since: $0) }
        statistics.audioRenderers[name] = counts
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

/// Passes audio to a function.
public struct Sound: MediaNode {
    public var handle: NodeHandle

    /// A node that passes audio to a function.
    ///
    /// - Parameter receive: called for each chunk of audio, 10 to 25 ms long, one call after the other, on a GStreamer
    ///   thread. Return soon and never block. To stop the pipeline, start a Task.
    public init(_ receive: @escaping @Sendable (AudioChunk) -> Void) {
        handle = NodeHandle(SoundNode.kind, code: .audio(receive))
    }

    /// The audio that the function got so far.
    ///
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
}
