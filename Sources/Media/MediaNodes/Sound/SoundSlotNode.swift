import GStreamerKit
package import MediaGraph

/// The place of one received audio in the process's mix: measures it, and holds it for late packets and for lip-sync. One
/// stream after another may have it.
package final class SoundSlotNode: NodeType, SoundHolding {
    package static let kind = NodeKind(
        "sound-slot", .processor, "The place of one received audio in a mix", inputs: .rawAudioIn, outputs: .rawAudioOut
    )

    private let meter: AudioRendererNode
    private let sound: SoundHold

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
        sound = SoundHold(instance, "in", at: instance.element("sound").source)
    }

    /// The stream has ended, and the next audio is of another one, marked as a gap. Returns false if there was no audio.
    func end() -> Bool { sound.end() }

    /// How much later the audio is played at present, and the part of that for lip-sync, in seconds.
    var held: (all: Double, lipSync: Double) { sound.held }

    package func hold(seconds: Double) { sound.hold(seconds: seconds) }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        meter.report(into: &statistics, as: name)
    }
}

extension Node {
    /// The place of one received audio in a mix.
    package static func soundSlot(_ name: String) -> Node { Node(SoundSlotNode.kind, name) }
}
