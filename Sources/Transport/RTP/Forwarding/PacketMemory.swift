/// The memory for packets, such as payloads to send again, and the most that its settings allow. In bytes.
package struct PacketMemory: Sendable, Equatable {
    package var held = 0
    package var limit = 0

    package init(held: Int = 0, limit: Int = 0) {
        self.held = held
        self.limit = limit
    }

    package static func += (sum: inout Self, other: Self) {
        sum.held += other.held
        sum.limit += other.limit
    }
}
