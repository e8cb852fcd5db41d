import MediaGraph
import Synchronization

/// A node with a head, whose device comes and goes.
protocol HeadedNode: RunningNode {
    /// Nil when the node has finished.
    var head: SourceHead? { get }
}

extension HeadedNode {
    func prepare() throws(MediaError) { head?.prepare() }

    func finish() { head?.finish() }

    var absence: MediaError? { head?.absence }

    func whenDecided(_ body: @escaping @Sendable () -> Void) { if let head { head.whenDecided(body) } else { body() } }

    func report(into statistics: inout MediaStatistics, as name: String) { statistics.sources[name] = head?.status }
}

/// A node that is its own device. It and its head retain each other until it finishes or is discarded.
protocol SelfHeadedNode: HeadedNode {
    var heldHead: HeldHead { get }
}

extension SelfHeadedNode {
    var head: SourceHead? { heldHead.head }

    func finish() { heldHead.finish() }

    func discard() { finish() }
}

final class HeldHead: Sendable {
    private let state = Mutex<SourceHead?>(nil)

    var head: SourceHead? { state.withLock { $0 } }

    func hold(_ head: SourceHead) { state.withLock { $0 = head } }

    /// Finishes the head and forgets it.
    func finish() {
        head?.finish()
        state.withLock { $0 = nil }
    }
}
