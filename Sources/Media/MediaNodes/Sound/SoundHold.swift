import GStreamerKit
import MediaGraph
import Synchronization

/// A node whose output is mixed, or held for playing. Nothing behind it holds that audio again.
protocol SoundHolding: RunningNode {}

/// Holds received audio where it enters a node that plays or mixes it in real time: for late packets, and for lip-sync
/// (`HeldSound`). Other audio passes unchanged.
///
/// Nodes that only record or forward audio have none: they take late audio with its own times.
final class SoundHold: Sendable {
    private struct State {
        var sound = HeldSound()
        weak var input: RTPInputNode?
        /// When to search for the input again, in nanoseconds of the pipeline.
        var nextSearch: UInt64 = 0
    }

    /// An edit may give the node another source. In nanoseconds.
    private static let searchInterval: UInt64 = 1_000_000_000
    /// Half a packet of audio, in nanoseconds: streams are a packet apart at least.
    private static let margin: UInt64 = 10_000_000

    private let pipeline: WeakBox<Pipeline>
    private let search: @Sendable () -> RTPInputNode?
    private let state = Mutex(State())

    /// - Parameter pad: where the audio of the node's input `port` passes.
    init(_ instance: NodeInstance, _ port: String, at pad: Pad) {
        pipeline = WeakBox(instance.pipeline)
        search = { [weak instance] in instance?.receivedSound(at: port) }
        _ = received(at: 0)
        pad.onBuffer { [weak self] buffer in self?.pass(buffer) ?? .pass }
    }

    /// The source of the audio, at a time in nanoseconds of the pipeline. Nil if the audio is not to be held.
    private func received(at now: UInt64) -> RTPInputNode? {
        let (known, isDue) = state.withLock { state -> (RTPInputNode?, Bool) in
            guard now >= state.nextSearch else { return (state.input, false) }
            state.nextSearch = now + Self.searchInterval
            return (nil, true)
        }
        guard isDue else { return known }
        let found = search()
        found?.holdSound()
        state.withLock { $0.input = found }
        return found
    }

    private func pass(_ buffer: borrowing PassingBuffer) -> ProbeAnswer {
        guard let time = buffer.timestamp, let duration = buffer.duration else { return .pass }
        let now = pipeline.value?.runningTime ?? time
        guard let input = received(at: now) else { return .pass }
        let jitter = input.soundDelay
        let change = state.withLock { state -> (isFirst: Bool, time: UInt64, samples: [Int16]?)? in
            guard let isFirst = state.sound.begins(with: time) else { return nil }
            let (later, samples) = state.sound.take(
                { buffer.samples }, at: time, lasting: duration, lateness: now - min(now, time), jitter: jitter)
            return (isFirst, later, samples)
        }
        guard let change else { return .drop }
        if let samples = change.samples {
            buffer.replace(with: samples, lasting: HeldSound.nanoseconds(samples.count / 2))
        }
        if change.time != time { buffer.retime(to: change.time) }
        if change.isFirst { buffer.markGap() }
        return .pass
    }

    /// The stream has ended, and the next audio is of another one, marked as a gap. Returns false if there was no audio.
    func end() -> Bool {
        guard let input = state.withLock({ $0.input }), let newest = input.timestamps.newest,
            let now = pipeline.value?.runningTime
        else { return false }
        let boundary = max(now - min(now, Self.margin), newest.time + Self.margin)
        state.withLock { $0.sound.begin(at: boundary) }
        input.beginSound()
        return true
    }

    /// How much later the audio is played at present, and the part of that for lip-sync, in seconds.
    var held: (all: Double, lipSync: Double) { state.withLock { ($0.sound.seconds, $0.sound.hold) } }

    func hold(seconds: Double) { state.withLock { $0.sound.hold(seconds: seconds) } }
}

extension NodeInstance {
    /// The RTP input whose audio reaches an input of this node, if it is to be held here.
    func receivedSound(at port: String) -> RTPInputNode? {
        for node in above(port) {
            if node is any SoundHolding { return nil }
            if let input = node as? RTPInputNode { return input.followsJitter ? input : nil }
        }
        return nil
    }
}
