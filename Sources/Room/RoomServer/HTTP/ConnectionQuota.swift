internal import Synchronization

/// Bounds the open connections, together and of one address. Called on NIO's threads.
final class ConnectionQuota: Sendable {
    static let maximum = 4000
    /// Of one address that is not loopback.
    static let maximumPerAddress = 1000

    private struct State {
        var open = 0
        var ofAddress: [ClientAddress: Int] = [:]
    }

    private let state = Mutex(State())

    /// Counts a connection; false, and not counted, if there are too many.
    func admit(_ address: ClientAddress) -> Bool {
        state.withLock { state in
            guard state.open < Self.maximum else { return false }
            if !address.isLoopback {
                guard state.ofAddress[address, default: 0] < Self.maximumPerAddress else { return false }
                state.ofAddress[address, default: 0] += 1
            }
            state.open += 1
            return true
        }
    }

    /// Ends the count of a connection that was admitted.
    func release(_ address: ClientAddress) {
        state.withLock { state in
            state.open -= 1
            guard let count = state.ofAddress[address] else { return }
            state.ofAddress[address] = count > 1 ? count - 1 : nil
        }
    }
}
