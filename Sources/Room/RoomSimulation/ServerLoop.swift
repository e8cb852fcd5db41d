internal import ICELite
internal import PeerLoop
internal import RTP
internal import ServerCore

/// One loop of the simulated server, with its port and its rooms.
final class ServerLoop {
    let loop: Loop
    let port: ServerPort
    let rooms: Rooms

    init(_ loop: Loop, port: ServerPort, rooms: Rooms) {
        self.loop = loop
        self.port = port
        self.rooms = rooms
    }

    /// Runs something on the loop.
    func turn(_ work: () -> Void) {
        further?.beginTurn()
        work()
        further?.finishTurn()
    }

    func receive(_ datagram: Span<UInt8>, from remote: TransportAddress) {
        further?.beginTurn()
        port.receive(datagram, from: remote)
        further?.finishTurn()
    }

    /// Sends and handles nothing any longer.
    func end() {
        port.end()
        further?.end()
    }

    private var further: FurtherLoop? { loop as? FurtherLoop }
}

/// A further loop of the simulated server, in step with the loop of the simulation.
final class FurtherLoop: Loop {
    private let first: Loop
    private lazy var alarm = first.makeTimer { [unowned self] in
        beginTurn()
        finishTurn()
    }

    init(of first: Loop) {
        self.first = first
        super.init(now: first.now)
    }

    func beginTurn() { now = first.now }

    /// Fires the timers that are due, and ends the turn.
    func finishTurn() {
        while fireNextTimer() {}
        endTurn()
        alarm.arm(at: hasMembers ? now : nextTimer)
    }

    func end() {
        alarm.disarm()
        forgetTimers()
    }
}
