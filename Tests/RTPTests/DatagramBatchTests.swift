import RTP
import Testing

@Suite struct DatagramBatchTests {
    /// Datagrams of 1, 2, 3... bytes, each with its length in every byte.
    private func batch(_ count: Int) -> DatagramBatch {
        var batch = DatagramBatch()
        for length in 1...count { batch.append([UInt8](repeating: UInt8(length), count: length)) }
        return batch
    }

    private func lengths(_ batch: DatagramBatch) -> [Int] {
        var lengths: [Int] = []
        batch.forEach { datagram in
            let isWhole = datagram.indices.allSatisfy { Int(datagram[$0]) == datagram.count }
            lengths.append(isWhole ? datagram.count : -1)
        }
        return lengths
    }

    @Test func `removing some of the last datagrams keeps the others whole and in order`() {
        var batch = batch(6)
        var next = 2
        batch.remove(from: 2) {
            next += 1
            return next == 3 || next == 5
        }
        #expect(lengths(batch) == [1, 2, 4, 6])
        #expect(batch.used == 13)
        batch.append([3, 3, 3])
        #expect(lengths(batch) == [1, 2, 4, 6, 3])
        batch.remove(from: 0) { true }
        #expect(batch.isEmpty && batch.used == 0)
    }

    @Test func `removing the first bytes keeps the datagrams behind them`() {
        var batch = batch(4)
        batch.removeFirst(bytes: 3)
        #expect(lengths(batch) == [3, 4])
        batch.append([2, 2])
        #expect(lengths(batch) == [3, 4, 2])
        batch.removeFirst(bytes: 9)
        #expect(batch.isEmpty && batch.used == 0)
    }
}
