package import RTP

/// When the packets of videos were sent, arrived at viewers, and when frames were shown: for tables of repair.
///
/// On the simulation's thread.
package final class PacketLog {
    private struct FrameID: Hashable {
        var source: UInt32
        var generation: UInt16
        var frame: UInt32
    }

    private struct PacketID: Hashable {
        var frame: FrameID
        var index: UInt8
    }

    private struct Sent {
        var time: MonotonicTime
        var packets: Int
    }

    /// The packets of a span of time at one viewer. All delays are beyond the shortest one of any packet.
    package struct Outcome: Sendable {
        /// Without those that the server left out, and those that the publisher did not send for lack of bits.
        package var packets = 0
        /// Packets that reached the server and that it did not forward, as on a link that seems to have no room for them.
        package var leftOut = 0
        /// Packets that had not arrived after 400 ms.
        package var missing = 0
        /// Packets that never arrived.
        package var lost = 0
        /// Of packets that were late by more than 15 ms, shortest first.
        package var repairs: [TimeInterval] = []
        /// Times between two frames that exceed 250 ms.
        package var freezes: [TimeInterval] = []
        /// Of the frames, shortest first: from their arrival without loss until they were shown.
        package var delays: [TimeInterval] = []
        /// Of RTP payload, and of all datagrams of both links that carried it.
        package var mediaBytes = 0
        package var sentBytes = 0
        package var framesSent = 0
        package var framesShown = 0
    }

    private var sent: [FrameID: Sent] = [:]
    private var onTheWay: Set<PacketID> = []
    private var atServer: Set<PacketID> = []
    private var forwarded: Set<PacketID> = []
    private var arrived: [PacketID: MonotonicTime] = [:]
    private var shown: [(frame: FrameID, time: MonotonicTime)] = []

    package static let deadline = RepairBounds.playoutDelay
    package static let freeze = TimeInterval.milliseconds(250)
    /// More than the pacer spreads a frame.
    private static let late = TimeInterval.milliseconds(15)

    private static func id(_ part: FramePart) -> FrameID {
        FrameID(source: part.source, generation: part.generation, frame: part.frame)
    }

    func sent(_ part: FramePart, at time: MonotonicTime) {
        sent[Self.id(part)] = Sent(time: time, packets: Int(part.count))
    }

    func arrived(_ part: FramePart, at time: MonotonicTime) {
        let id = PacketID(frame: Self.id(part), index: part.index)
        if arrived[id] == nil { arrived[id] = time }
    }

    /// The places that a datagram passes.
    enum Place {
        case publisherLink, server, viewerLink
    }

    func passed(_ datagram: Span<UInt8>, _ place: Place) {
        guard let part = FramePart(datagram: datagram) else { return }
        let id = PacketID(frame: Self.id(part), index: part.index)
        switch place {
        case .publisherLink: onTheWay.insert(id)
        case .server: atServer.insert(id)
        case .viewerLink: forwarded.insert(id)
        }
    }

    func shown(_ part: FramePart, at time: MonotonicTime) { shown.append((Self.id(part), time)) }

    /// The outcome for packets that were sent in a span of time, which ends at least a second ago.
    package func outcome(from start: MonotonicTime, to end: MonotonicTime) -> Outcome {
        var outcome = Outcome()
        var delays: [TimeInterval?] = []
        for (frame, sent) in sent where sent.time >= start && sent.time < end {
            outcome.framesSent += 1
            for index in 0..<sent.packets {
                let id = PacketID(frame: frame, index: UInt8(index))
                if atServer.contains(id), !forwarded.contains(id) {
                    outcome.leftOut += 1
                } else if onTheWay.contains(id) {
                    delays.append(arrived[id].map { $0 - sent.time })
                }
            }
        }
        let shortest = delays.compactMap { $0 }.min() ?? .zero
        outcome.packets = delays.count
        for delay in delays {
            guard let delay else {
                outcome.missing += 1
                outcome.lost += 1
                continue
            }
            let time = delay - shortest
            if time > Self.deadline { outcome.missing += 1 }
            if time > Self.late { outcome.repairs.append(time) }
        }
        outcome.repairs.sort()
        var last: MonotonicTime?
        for (frame, time) in shown {
            guard let sent = sent[frame], sent.time >= start, sent.time < end else { continue }
            outcome.framesShown += 1
            outcome.delays.append(time - sent.time - shortest)
            if let last, time - last > Self.freeze { outcome.freezes.append(time - last) }
            last = time
        }
        outcome.delays.sort()
        return outcome
    }
}

extension FramePart {
    /// Nil for a datagram that carries no video.
    fileprivate init?(datagram: Span<UInt8>) {
        guard case .media(let media) = Contents(of: datagram), media.source != nil else { return nil }
        let start = min(Contents.payloadStart(of: datagram) + (media.isRepair ? 2 : 0), datagram.count)
        self.init(payload: datagram.extracting(start..<datagram.count))
    }
}
