internal import RoomClient
internal import Synchronization

/// The views of one video.
final class VideoOutlet: Sendable {
    let fanout: FrameFanout
    private let attached = Mutex<[(target: RenderTarget, sink: Int)]>([])

    init(fanout: FrameFanout) { self.fanout = fanout }

    deinit { detachAll() }

    func attach(_ target: RenderTarget) {
        detach(target)
        let sink = fanout.add { frame in target.show(frame) }
        attached.withLock { $0.append((target, sink)) }
        // The target keeps the function.
        target.attached { [weak self, weak target] in
            if let target { self?.remove(target) }
        }
    }

    func detach(_ target: RenderTarget) {
        if remove(target) { target.detached() }
    }

    func detachAll() {
        for entry in attached.withLock({ $0 }) { detach(entry.target) }
    }

    /// The views' ids, in order of attachment.
    var viewIDs: [String] { attached.withLock { $0.map(\.target.uuid) } }

    @discardableResult
    private func remove(_ target: RenderTarget) -> Bool {
        let sinks = attached.withLock { attached in
            defer { attached.removeAll { $0.target === target } }
            return attached.filter { $0.target === target }.map(\.sink)
        }
        for sink in sinks { fanout.remove(sink) }
        return !sinks.isEmpty
    }
}
