import GStreamerKit
import Glibc
import MediaGraph
import Synchronization

/// Measures the sound that reaches a renderer, plays it or hands it on.
final class AudioRendererNode: RunningNode {
    private static let sampleRate = 48_000
    private static let channels = 2
    /// What counts as sound, in decibels below full scale.
    private static let silence = -60.0

    let name: String
    private let counts = Mutex(MediaStatistics.AudioRenderer())
    private let reporter: Reporter
    private let timestamps: TimestampMap?
    private let handOver: (@Sendable (AudioChunk) -> Void)?

    @discardableResult
    init(
        _ node: ResolvedNode, in assembly: Assembly, isAudible: Bool, handOver: (@Sendable (AudioChunk) -> Void)?
    ) {
        name = node.name
        reporter = assembly.reporter
        timestamps = assembly.rtpInput(above: node.name)?.timestamps
        self.handOver = handOver
        counts.withLock { $0.isAudible = isAudible }
        assembly.register(self)
    }

    static func build(sound node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        guard let handOver = assembly.bindings.audio[node.name] else {
            preconditionFailure("a graph that was validated has an unbound \(node.name)")
        }
        let sink = try assembly.sink(of: node)
        AudioRendererNode(node, in: assembly, isAudible: false, handOver: handOver).watch(sink)
        assembly.accept("in", of: node, into: sink)
    }

    /// Plays on the first sound system that answers; where none does, the sound is measured and dropped.
    static func build(speaker node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        guard let factory = AudioSystem.playing else {
            let sink = try assembly.sink(of: node)
            AudioRendererNode(node, in: assembly, isAudible: false, handOver: nil).watch(sink)
            assembly.accept("in", of: node, into: sink)
            return
        }
        let queue = try assembly.element(
            "queue", of: node,
            [
                "leaky": "downstream", "max-size-buffers": 0, "max-size-bytes": 0, "max-size-time": 500_000_000,
                "silent": true,
            ])
        let convert = try assembly.element("audioconvert", of: node)
        let resample = try assembly.element("audioresample", of: node)
        let sink = try assembly.element(
            factory, of: node, ["buffer-time": 60_000, "latency-time": 10_000, "async": false])
        try assembly.link(queue, convert, resample, sink)
        AudioRendererNode(node, in: assembly, isAudible: true, handOver: nil).watch(queue)
        assembly.accept("in", of: node, into: queue)
    }

    func watch(_ element: Element) {
        let input = element.sink
        input.onBuffer { buffer in
            self.take(buffer)
            return .pass
        }
    }

    private func take(_ buffer: borrowing PassingBuffer) {
        let level = buffer.read(Self.level(of:)) ?? -120
        let seconds = Double(buffer.byteCount / (2 * Self.channels)) / Double(Self.sampleRate)
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
        return mean > 1e-12 ? 10 * log10(mean) : -120
    }

    func report(into statistics: inout MediaStatistics) {
        statistics.audioRenderers[name] = counts.withLock { $0 }
    }
}
