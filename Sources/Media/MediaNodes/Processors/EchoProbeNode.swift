import GStreamerKit
package import MediaGraph
import Synchronization

/// Audio on its way to a loudspeaker, for the cancellers of this process that hear it by its label.
///
/// A canceller gets the buffers with their times on the clock, so its pipeline may have begun at another time, and may pause.
final class PlayedAudio: Sendable {
    typealias Listener = @Sendable (_ audio: MediaBuffer, _ time: MediaTime, _ delay: Double?) -> Void

    private struct State {
        var listeners: [Int: Listener] = [:]
        var serial = 0
        /// How long after its timestamp the audio is heard, as the pipeline that plays it says.
        var delay: Double?
    }

    private static let all = Mutex<[String: PlayedAudio]>([:])

    private let state = Mutex(State())

    /// The audio with a label, whether or not it is played at present.
    static func labelled(_ label: String) -> PlayedAudio {
        all.withLock { all in
            let audio = all[label] ?? PlayedAudio()
            all[label] = audio
            return audio
        }
    }

    /// Calls `body` with each buffer, on the thread that plays it, until `ignore`.
    func listen(_ body: @escaping Listener) -> Int {
        state.withLock { state in
            state.serial += 1
            state.listeners[state.serial] = body
            return state.serial
        }
    }

    func ignore(_ listener: Int) { state.withLock { $0.listeners[listener] = nil } }

    fileprivate func isHeard(after delay: Double) { state.withLock { $0.delay = delay } }

    fileprivate func play(_ buffer: borrowing PassingBuffer) {
        let (listeners, delay) = state.withLock { (Array($0.listeners.values), $0.delay) }
        for listener in listeners { listener(buffer.shared, buffer.time, delay) }
    }
}

/// Lets the echo cancellers of other pipelines hear the audio that passes to a loudspeaker.
package final class EchoProbeNode: NodeType, SoundHolding {
    package static let kind = NodeKind(
        "echo-probe", .processor,
        "Passes audio on to a loudspeaker, and lets echo-cancel nodes of other graphs of the process hear it",
        inputs: .rawAudioIn, outputs: .rawAudioOut,
        settings: [
            SettingContract(
                "label", .text, default: .text(defaultLabel),
                "Label by which an echo-cancel node with the same 'heard' knows the audio")
        ])

    package static let defaultLabel = "loudspeaker"

    private let hold: SoundHold

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFilter(RawFormat.audio, as: "sound")
        plan.chain(to: .rawAudio)
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let audio = PlayedAudio.labelled(instance.text("label"))
        let sound = instance.element("sound")
        // Before the cancellers hear it.
        let node = EchoProbeNode(SoundHold(instance, "in", at: sound.sink))
        sound.sink.watchBuffers { audio.play($0) }
        sound.source.onUpstreamEvent { event in
            if case .latency(let seconds) = event { audio.isHeard(after: seconds) }
            return .pass
        }
        return node
    }

    private init(_ hold: SoundHold) { self.hold = hold }
}

/// Lets the ``EchoCancel`` nodes of other pipelines of the process hear the audio that passes to a loudspeaker:
///
/// ```swift
/// received >>> EchoProbe() >>> Speaker()                      // one pipeline
/// microphone >>> EchoCancel(heard: "loudspeaker") >>> voice   // another one
/// ```
public struct EchoProbe: MediaNode {
    public var handle: NodeHandle

    /// A probe that passes audio on unchanged.
    ///
    /// - Parameter label: that of `EchoCancel(heard:)`; nil for `loudspeaker`. Nodes with one label count as one loudspeaker.
    public init(label: String? = nil) { handle = NodeHandle(EchoProbeNode.kind, ["label": label]) }
}

extension Node {
    /// Lets echo cancellers of other pipelines hear the audio that passes.
    package static func echoProbe(_ name: String = "echo-probe", label: String? = nil) -> Node {
        Node(EchoProbeNode.kind, name, ["label": label])
    }
}
