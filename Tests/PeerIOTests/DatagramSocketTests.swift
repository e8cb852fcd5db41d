import RTP
import Testing

@testable import ICELite
@testable import PeerIO

@Suite struct DatagramSocketTests {
    private let size = 1200

    private func pair(to socket: DatagramSocket) -> AddressPair {
        AddressPair(remote: socket.address, local: socket.address)
    }

    private func open() throws -> DatagramSocket {
        try DatagramSocket(at: TransportAddress(ipv4: 0x7f00_0001, port: 0))
    }

    private func receiveAll(_ socket: DatagramSocket) -> Int {
        var total = 0
        while case let count = socket.receive(), count > 0 { total += count }
        return total
    }

    @Test func `a blocked socket holds at most 2 MiB, and counts what it drops`() throws {
        let (sender, receiver) = (try open(), try open())
        defer { for socket in [sender, receiver] { socket.end() } }
        let datagram = [UInt8](repeating: 7, count: size)
        sender.block()
        for _ in 0..<10_000 { _ = sender.send(on: pair(to: receiver)) { $0.append(datagram) } }
        #expect(sender.heldBytes <= 2 << 20 + size)
        let held = sender.heldBytes / size
        #expect(sender.refused == 10_000 - held)
        // The held datagrams leave, unless the receiver has no room.
        sender.flush()
        #expect(!sender.isBlocked && sender.heldBytes == 0)
        #expect((1...held).contains(receiveAll(receiver)))
        _ = sender.send(on: pair(to: receiver)) { $0.append(datagram) }
        sender.flush()
        #expect(receiveAll(receiver) == 1)
    }

    @Test func `an impossible address does not stop the cutting of runs for others`() throws {
        let (sender, receiver) = (try open(), try open())
        defer { for socket in [sender, receiver] { socket.end() } }
        let datagram = [UInt8](repeating: 7, count: size)
        let nowhere = AddressPair(remote: TransportAddress(ipv4: 0x7f00_0001, port: 0), local: sender.address)
        for address in [nowhere, pair(to: receiver)] {
            for _ in 0..<4 { _ = sender.send(on: address) { $0.append(datagram) } }
        }
        sender.flush()
        #expect(sender.refused == 4)
        #expect(receiveAll(receiver) == 4)
        #expect(sender.cutsRuns)
    }
}
