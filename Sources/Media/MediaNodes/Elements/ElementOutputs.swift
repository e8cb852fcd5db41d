import GStreamerKit
import MediaGraph
import Synchronization

/// The output of an element's node: links pads that appear later, and moves media that begins here to the pipeline's
/// timeline.
final class ElementOutputs: Sendable {
    private let pipeline: WeakBox<Pipeline>
    /// The shift of media that begins here in nanoseconds, common to video and audio.
    private let offset = Mutex<Int?>(nil)

    init(_ instance: NodeInstance, _ element: Element) {
        pipeline = WeakBox(instance.pipeline)
        let isSource = instance.plan.inputs.isEmpty && !instance.plan.outputs.isEmpty
        for (port, reference) in instance.plan.outputs {
            let pace = instance.has("\(port)-pace") ? instance.element("\(port)-pace") : nil
            let output = pace?.source ?? instance.element(reference.element).pad(reference.pad ?? "src")
            if let pace { move(to: pace) }
            if isSource, let output { instance.awaitFirstBuffer(at: output) }
        }
        linkAppearing(instance, element)
    }

    /// Moves media that begins here: its first frame is due when it arrives. Elements that are not live count from 0
    /// whenever they start. Live ones are left alone.
    private func move(to pace: Element) {
        // Upstream of the pacing element, so that the shift takes effect before the observed buffer.
        guard let feeder = pace.sink.peer else { return }
        feeder.onBuffer { [self, weak pace, weak feeder] buffer in
            guard let pace, let feeder else { return .passAndRemove }
            if feeder.latency?.isLive == true {
                _ = pace.trySet("sync", false)
                return .passAndRemove
            }
            let (begins, now) = (buffer.runningTime ?? 0, pipeline.value?.runningTime ?? 0)
            feeder.offset = offset.withLock { offset in
                let moved = offset ?? Self.shift(of: begins, to: now)
                offset = moved
                return moved
            }
            return .passAndRemove
        }
    }

    /// How far to move media whose first frame is due at `begins`, in nanoseconds of running time. An element may give any
    /// timestamp.
    static func shift(of begins: UInt64, to now: UInt64) -> Int { max(0, Int(clamping: now) - Int(clamping: begins)) }

    private func linkAppearing(_ instance: NodeInstance, _ element: Element) {
        let entries = ["video", "audio"].compactMap { port in Entry(instance, port) }
        guard !entries.isEmpty else { return }
        element.onPadAdded { pad in
            guard let kind = pad.media else { return }
            for entry in entries where entry.kind == kind && entry.take(pad) { break }
        }
        let reporter = instance.reporter
        let name = instance.name
        let factory = element.factory
        element.onNoMorePads {
            let idle = entries.filter { !$0.isTaken }
            if idle.count == entries.count {
                let wanted = entries.map(\.kind).joined(separator: " or ")
                reporter.fail(
                    MediaError(
                        code: MediaError.Code.elementFailed,
                        message:
                            "\"\(name)\": \(factory) delivers no \(wanted). Link another output, or change its "
                            + "input.", node: name), name)
            } else {
                // Consumers of missing media receive its end.
                for entry in idle { entry.end() }
            }
        }
    }

    /// The destination of the pads of one kind of media.
    private struct Entry: Sendable {
        let kind: String
        private let first: Element
        private let convert: Element

        init?(_ instance: NodeInstance, _ port: String) {
            guard instance.plan.outputs[port] != nil, instance.has("\(port)-queue") else { return nil }
            kind = port
            convert = instance.element("\(port)-convert")
            first = instance.has("\(port)-decoder") ? instance.element("\(port)-decoder") : convert
            guard first !== convert else { return }
            first.onPadAdded { [convert] pad in
                if pad.media == port, !convert.sink.isLinked { _ = pad.link(convert.sink) }
            }
        }

        var isTaken: Bool { first.sink.isLinked }

        func take(_ pad: Pad) -> Bool { !isTaken && pad.link(first.sink) }

        func end() { convert.sink.sendEndOfStream() }
    }
}

extension Pad {
    /// The output for a new pad.
    fileprivate var media: String? {
        guard let structure = caps?.structures.first else { return nil }
        if structure.name == "application/x-rtp" { return structure.text("media") }
        let type = structure.name.split(separator: "/").first
        return type == "video" || type == "image" ? "video" : type == "audio" ? "audio" : nil
    }
}
