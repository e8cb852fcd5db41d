internal import PeerIO
internal import RTP
internal import RoomProtocol

extension ServerStatistics.Loop {
    init(rooms: Int, participants: Int, streams: Int, loop: EventLoop, port: MediaPortStatistics?) {
        let turns = loop.turns
        self.init(
            rooms: rooms, participants: participants, streams: streams, received: loop.traffic.received,
            sent: loop.traffic.sent, handedOver: port?.handedOver ?? 0,
            turns: .init(
                count: turns.turns, busySeconds: turns.busy.seconds, longestSeconds: turns.longest.seconds,
                times: turns.times.map { .init(below: $0.below.seconds, turns: $0.turns) }),
            drops: .init(
                unread: port?.overflowed ?? 0, unsent: loop.traffic.refused + (port?.refused ?? 0),
                notTakenOver: port?.notTakenOver ?? 0, ignored: port?.ignored ?? 0),
            queues: .init(work: loop.waitingWork, unsent: port?.unsent ?? 0))
    }
}
