import RTP
import Testing
import TestSupport

@Suite struct PacketStoreTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// A packet whose bytes all have the low byte of `number`.
    private func filled(_ number: Int, length: Int) -> PacketBuffer {
        var packet = PacketBuffer()
        for index in 0..<length { packet.bytes[index] = UInt8(truncatingIfNeeded: number) }
        packet.count = length
        return packet
    }

    private func limits(packets: Int = 4096, bytes: Int = 1 << 20) -> PacketStore.Limits {
        var limits = PacketStore.Limits()
        limits.packets = packets
        limits.bytes = bytes
        return limits
    }

    private func isIntact(_ index: Int, in store: PacketStore) -> Bool {
        store.withPayload(index) { payload in
            var isIntact = payload.count > 0
            for place in 0..<payload.count where payload[place] != UInt8(truncatingIfNeeded: index) { isIntact = false }
            return isIntact
        }
    }

    @Test("The newest packets are intact, and overwritten ones are gone, whatever their lengths")
    func newest() {
        let store = PacketStore(limits: limits(packets: 64, bytes: 32 * 1024))
        var random = Seeded(3)
        var lengths: [Int] = []
        for step in 0..<5000 {
            lengths.append(Int.random(in: 1...1400, using: &random))
            #expect(store.add(filled(step, length: lengths[step]), 0..<lengths[step], now: start) == step)
            guard step % 97 == 0, step > 100 else { continue }
            for wanted in (step - 15)...step {
                #expect(store.length(of: wanted) == lengths[wanted], "16 packets of at most 1400 bytes fit")
                #expect(isIntact(wanted, in: store))
            }
            #expect(!store.contains(step - 64))
            #expect(store.length(of: step - 64) == 0)
            #expect(store.withPayload(step - 64) { $0.isEmpty })
            #expect(!store.contains(step + 1))
        }
        #expect(store.capacity <= 32 * 1024)
    }

    @Test("Only the payload is stored")
    func payload() {
        let store = PacketStore()
        let index = store.add(filled(0, length: 100), 12..<40, now: start)
        #expect(store.length(of: index) == 28)
    }

    @Test("A store grows for packets that receivers may still request, and not for older ones")
    func growth() {
        let slow = PacketStore()
        for step in 0..<2000 {
            _ = slow.add(filled(step, length: 1000), 0..<1000, now: start + .milliseconds(Int64(step) * 50))
        }
        // 20 packets a second.
        #expect(slow.capacity == 64 * 1024)
        let fast = PacketStore()
        for step in 0..<2000 {
            _ = fast.add(filled(step, length: 1000), 0..<1000, now: start + .milliseconds(Int64(step) * 4))
            guard step % 499 == 0 else { continue }
            for wanted in max(0, step - 499)...step where !isIntact(wanted, in: fast) {
                Issue.record("Packet \(wanted) is missing or garbled at \(step).")
            }
        }
        #expect(fast.capacity == 512 * 1024)
    }

    @Test("A flood grows a store up to its limits only")
    func flood() {
        let store = PacketStore(limits: limits(packets: 300, bytes: 100_000))
        for step in 0..<5000 {
            let length = 1 + step * 37 % 900
            _ = store.add(filled(step, length: length), 0..<length, now: start)
            guard step % 97 == 0 else { continue }
            var present = 0
            for wanted in max(0, step - 600)...step where store.contains(wanted) {
                present += store.length(of: wanted)
                if !isIntact(wanted, in: store) { Issue.record("Packet \(wanted) is garbled at \(step).") }
            }
            if present > 100_000 { Issue.record("\(present) bytes in a store of 100,000") }
        }
        #expect(store.capacity == 100_000)
        #expect(!store.contains(5000 - 513))
    }

    @Test("A store without packets has no memory, and nothing in it")
    func empty() {
        let store = PacketStore()
        #expect(store.capacity == 0)
        #expect(!store.contains(0) && store.length(of: 0) == 0 && store.withPayload(0) { $0.isEmpty })
    }
}

extension PacketStore {
    fileprivate func add(_ packet: borrowing PacketBuffer, _ payload: Range<Int>, now: MonotonicTime) -> Int {
        add(packet, payload, timestamp: RTPTimestamp(0), marker: false, now: now)
    }
}
