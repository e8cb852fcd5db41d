import GStreamerKit
package import MediaGraph
import Synchronization

/// The place of one received audio in the process's mix: measures it, and holds it for late packets and for lip-sync. One
/// stream after another may have it.
package final class SoundSlotNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "sound-slot", .processor, "The place of one received audio in a mix", inputs: .rawAudioIn, outputs: .rawAudioOut
    )

    private let meter: AudioRendererNode
    private let pipeline: WeakBox<Pipeline>
    private let input: RTPInputNode?
    private let sound = Mutex(HeldSound())
    /// Half a packet of audio, in nanoseconds: streams are a packet apart at least.
    private static let margin: UInt64 = 10_000_000

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFilter(RawFormat.audio, as: "sound")
        plan.chain(to: .rawAudio)
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        SoundSlotNode(instance)
    }

    private init(_ instance: NodeInstance) {
        meter = AudioRendererNode(instance, at: "sound", isAudible: false)
        pipeline = WeakBox(instance.pipeline)
        input = instance.nearest(RTPInputNode.self)
        input?.holdSound()
        instance.element("sound").source.onBuffer { [weak self] buffer in self?.pass(buffer) ?? .pass }
    }

    private func pass(_ buffer: borrowing PassingBuffer) -> ProbeAnswer {
        guard let time = buffer.timestamp, let duration = buffer.duration else { return .pass }
        let now = pipeline.value?.runningTime ?? time
        let jitter = input?.soundDelay ?? 0
        let change = sound.withLock { sound -> (isFirst: Bool, time: UInt64, samples: [Int16]?)? in
            guard let isFirst = sound.begins(with: time) else { return nil }
            let (later, samples) = sound.take(
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
        guard let newest = input?.timestamps.newest, let now = pipeline.value?.runningTime else { return false }
        let boundary = max(now - min(now, Self.margin), newest.time + Self.margin)
        sound.withLock { $0.begin(at: boundary) }
        input?.beginSound()
        return true
    }

    /// How much later the audio is played at present, and the part of that for lip-sync, in seconds.
    var held: (all: Double, lipSync: Double) { sound.withLock { ($0.seconds, $0.hold) } }

    package func hold(seconds: Double) { sound.withLock { $0.hold(seconds: seconds) } }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        meter.report(into: &statistics, as: name)
    }
}

extension Node {
    /// The place of one received audio in a mix.
    package static func soundSlot(_ name: String) -> Node { Node(SoundSlotNode.kind, name) }
}
