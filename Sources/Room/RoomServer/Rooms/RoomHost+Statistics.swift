internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol
internal import ServerCore

extension ServerStatistics.Loop {
    init(
        _ counts: Rooms.Counts, layers: [ServerStatistics.Layer], loop: EventLoop, port: MediaPortStatistics?
    ) {
        let turns = loop.turns
        self.init(
            rooms: counts.rooms, participants: counts.participants, streams: counts.streams,
            received: loop.traffic.received,
            sent: loop.traffic.sent, handedOver: port?.handedOver ?? 0,
            turns: .init(
                count: turns.turns, busySeconds: turns.busy.seconds, longestSeconds: turns.longest.seconds,
                times: turns.times.map { .init(below: $0.below.seconds, turns: $0.turns) }),
            drops: .init(
                unread: port?.overflowed ?? 0, unsent: loop.traffic.refused + (port?.refused ?? 0),
                notTakenOver: port?.notTakenOver ?? 0, notPiped: counts.notPiped,
                outgoingFull: loop.traffic.outgoingFull, unprotectable: loop.traffic.unprotectable,
                ignored: port?.ignored ?? 0),
            queues: .init(work: loop.waitingWork, unsent: port?.unsent ?? 0), layers: layers.isEmpty ? nil : layers)
    }
}
