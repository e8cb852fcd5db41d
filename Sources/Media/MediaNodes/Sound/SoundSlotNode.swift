import GStreamerKit
package import MediaGraph
import Synchronization

/// The place of one received audio in the process's mix: measures it, holds it for lip-sync, and sets its volume. One stream
/// after another may have it.
package final class SoundSlotNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "sound-slot", .processor, "The place of one received audio in a mix", inputs: .rawAudioIn, outputs: .rawAudioOut
    )

    private let meter: AudioRendererNode
    private let volume: Element
    private let sound = Mutex(HeldSound())

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFilter(RawFormat.audio, as: "sound")
        plan.add("volume", as: "volume", [:])
        plan.chain(to: .rawAudio)
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        SoundSlotNode(instance)
    }

    private init(_ instance: NodeInstance) {
        meter = AudioRendererNode(instance, at: "sound", isAudible: false)
        volume = instance.element("volume")
        instance.element("sound").source.watchBuffers { [weak self] buffer in self?.pass(buffer) }
    }

    private func pass(_ buffer: borrowing PassingBuffer) {
        guard let time = buffer.timestamp, let duration = buffer.duration else { return }
        let (later, samples) = sound.withLock { sound in
            sound.take({ buffer.samples }, at: time, lasting: duration)
        }
        if let samples { buffer.replace(with: samples, lasting: HeldSound.nanoseconds(samples.count / 2)) }
        if later != time { buffer.retime(to: later) }
    }

    /// In seconds.
    var held: Double { sound.withLock { $0.seconds } }

    package func hold(seconds: Double) { sound.withLock { $0.hold(seconds: seconds) } }

    func setVolume(_ factor: Double, isMuted: Bool) {
        try? volume.set("volume", .number(factor))
        try? volume.set("mute", .flag(isMuted))
    }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        meter.report(into: &statistics, as: name)
    }
}

extension Node {
    /// The place of one received audio in a mix.
    package static func soundSlot(_ name: String) -> Node { Node(SoundSlotNode.kind, name) }
}
