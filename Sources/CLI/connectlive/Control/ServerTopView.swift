internal import RoomProtocol

/// One sample of a server's loops, as text.
struct ServerTopView {
    let lines: [String]

    /// - Parameter before: an earlier sample of the same run of the server.
    init(_ server: String, _ before: ServerStatistics, _ now: ServerStatistics, _ style: Style) {
        let participants = Figures.count(now.loops.map(\.participants).reduce(0, +), "participant")
        let longest = now.loops.map(\.turns.longestSeconds).max() ?? 0
        let heading =
            "\(server)  ·  running for \(Figures.clock(now.seconds))  ·  \(participants)  ·  longest turn "
            + Figures.duration(longest)
        var table = Table(
            .right, .right, .right, .right, .right, .right, .right, .right, .right, .right, .right, .left)
        table.add(
            "LOOP", "ROOMS", "PARTICIPANTS", "STREAMS", "LOAD", "TURN", "LONGEST", "IN/S", "OUT/S", "HANDED/S",
            "QUEUED",
            "DROPPED")
        var losing: Set<Int> = []
        let span = now.seconds - before.seconds
        for (index, (loop, earlier)) in zip(now.loops, before.loops).enumerated() {
            func rate(_ count: Int, _ past: Int) -> String {
                span > 0 ? Figures.number(Double(count - past) / span) : ""
            }
            if loop.drops.lost > earlier.drops.lost { losing.insert(index) }
            let load = span > 0 ? (loop.turns.busySeconds - earlier.turns.busySeconds) / span : 0
            let queued = loop.queues.work + loop.queues.unsent
            table.add(
                "\(index + 1)", "\(loop.rooms)", "\(loop.participants)", "\(loop.streams)",
                "\(Figures.number(100 * load)) %", loop.turns.median(since: earlier.turns).map(Figures.duration) ?? "",
                loop.turns.longest(since: earlier.turns).map(Figures.duration) ?? "",
                rate(loop.received, earlier.received), rate(loop.sent, earlier.sent),
                now.loops.count > 1 ? rate(loop.handedOver, earlier.handedOver) : "", queued > 0 ? "\(queued)" : "",
                loop.drops.text)
        }
        let rows = table.lines()
        lines =
            [style.bold(heading), "", style.faint(rows[0])]
            + rows.dropFirst().enumerated().map {
                losing.contains($0.offset) ? style.warning($0.element) : $0.element
            }
    }
}

extension ServerStatistics.Drops {
    /// Without datagrams of strangers.
    fileprivate var lost: Int { unread + unsent + notTakenOver + notPiped + outgoingFull + unprotectable }

    fileprivate var text: String {
        [
            (unread, "unread"), (unsent, "unsent"), (notTakenOver, "not taken over"), (notPiped, "not piped"),
            (outgoingFull, "queue full"), (unprotectable, "unprotectable"), (ignored, "ignored"),
        ].filter { $0.0 > 0 }.map { "\($0.0) (\($0.1))" }.joined(separator: ", ")
    }
}

extension ServerStatistics.Turns {
    /// In seconds, to a fifth. Nil without a turn since then.
    func median(since before: Self) -> Double? {
        let all = since(before)
        let half = all.map(\.turns).reduce(0, +) / 2
        var seen = 0
        return all.first {
            seen += $0.turns
            return seen > half
        }.map { min($0.below, longestSeconds) }
    }

    /// In seconds, to a fifth. Exact if no earlier turn was as long.
    func longest(since before: Self) -> Double? {
        if longestSeconds > before.longestSeconds { return longestSeconds }
        return since(before).last.map { min($0.below, longestSeconds) }
    }

    private func since(_ before: Self) -> [Time] {
        let past = Dictionary(before.times.map { ($0.below, $0.turns) }) { first, _ in first }
        return times.map { Time(below: $0.below, turns: $0.turns - (past[$0.below] ?? 0)) }.filter { $0.turns > 0 }
    }
}
