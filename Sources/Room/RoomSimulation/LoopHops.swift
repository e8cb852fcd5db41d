internal import RTP
internal import ServerCore

/// Delivers batches between the loops of the simulated server, 0.1 ms later. Tests hold or refuse them.
final class LoopHops {
    /// From one loop to another.
    private static let delay = TimeInterval.microseconds(100)

    /// Whether no loop accepts a batch of another one.
    var refuses = false
    /// The bytes of packets that may be on their way from one loop to another. Nil means the product's number.
    var window: Int?
    /// The packets that left one loop for another.
    private(set) var carried = (packets: 0, bytes: 0)
    /// Batches, while they are held.
    private var held: [() -> Void]?
    private unowned let simulation: World

    init(in simulation: World) { self.simulation = simulation }

    /// The links of one loop of `count`, all of which may have parts of a room.
    ///
    /// - Parameter rooms: those of a loop. Nil after the end of the server's process.
    func links(of place: Int, count: Int, rooms: @escaping (Int) -> Rooms?) -> LoopLinks {
        var links = LoopLinks(
            place: place, others: { _ in Array(0..<count) },
            send: { [unowned self] batch, loop in
                guard !refuses else { return false }
                if rooms(loop) != nil { pass(batch) { rooms(loop) } }
                return true
            })
        if let window { links.window = window }
        return links
    }

    private func pass(_ batch: PipeBatch, to rooms: @escaping () -> Rooms?) {
        carried.packets += batch.packetCount
        carried.bytes += batch.byteCount
        let deliver = { () -> Void in rooms()?.receive(batch) }
        if held != nil { held?.append(deliver) } else { simulation.after(Self.delay, deliver) }
    }

    /// Holds all batches, as if both loops were busy, or delivers them.
    func hold(_ holds: Bool) {
        for deliver in held ?? [] { simulation.after(Self.delay, deliver) }
        held = holds ? [] : nil
    }
}
