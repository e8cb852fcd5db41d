import Foundation
import RoomProtocol
import Testing
import TestSupport

@testable import connectlive

@Suite struct ServerTopTests {
    private static func loop(
        turns: Int, busy: Double, longest: Double, times: [(Double, Int)], drops: ServerStatistics.Drops, sent: Int = 0
    ) -> ServerStatistics.Loop {
        ServerStatistics.Loop(
            rooms: 2, participants: 7, streams: 3, received: 0, sent: sent, handedOver: 0,
            turns: .init(
                count: turns, busySeconds: busy, longestSeconds: longest,
                times: times.map { .init(below: $0.0, turns: $0.1) }),
            drops: drops, queues: .init(work: 4, unsent: 0))
    }

    private static func drops(unread: Int, outgoingFull: Int = 0, ignored: Int) -> ServerStatistics.Drops {
        .init(
            unread: unread, unsent: 0, notTakenOver: 0, notPiped: 0, outgoingFull: outgoingFull, unprotectable: 0,
            ignored: ignored)
    }

    @Test func `a line shows what a loop did between two samples`() throws {
        let before = ServerStatistics(
            seconds: 10,
            loops: [
                Self.loop(
                    turns: 10, busy: 1, longest: 0.5, times: [(0.001, 9), (0.64, 1)],
                    drops: Self.drops(unread: 5, ignored: 1))
            ])
        let now = ServerStatistics(
            seconds: 12,
            loops: [
                Self.loop(
                    turns: 110, busy: 1.5, longest: 0.5, times: [(0.000_02, 90), (0.001, 19), (0.64, 1)],
                    drops: Self.drops(unread: 5, outgoingFull: 3, ignored: 1), sent: 4800)
            ])
        let view = ServerTopView("ws://here:1", before, now, Style(hasColours: false))
        #expect(
            view.lines[0] == "ws://here:1  ·  running for 0:12  ·  7 participants  ·  longest turn 500 ms")
        #expect(
            view.lines.last?.contains(
                #/1 +2 +7 +3 +25 % +20 µs +1\.0 ms +0 +2400 +4  5 \(unread\), 3 \(queue full\), 1 \(ignored\)/#) == true
        )
        // Yellow, because packets were lost since.
        let coloured = ServerTopView("ws://here:1", before, now, Style(hasColours: true))
        #expect(coloured.lines.last?.hasPrefix("\u{1b}[33m") == true)
        let calm = ServerTopView("ws://here:1", now, now, Style(hasColours: true))
        #expect(calm.lines.last?.hasPrefix("\u{1b}[33m") == false)
    }

    @Test func `a turn that is the longest so far is shown exactly`() {
        let empty = ServerStatistics.Turns(count: 0, busySeconds: 0, longestSeconds: 0, times: [])
        let turns = ServerStatistics.Turns(
            count: 1, busySeconds: 0.0033, longestSeconds: 0.0033, times: [.init(below: 0.0035, turns: 1)])
        #expect(turns.longest(since: empty) == 0.0033)
        #expect(turns.longest(since: turns) == nil && turns.median(since: turns) == nil)
    }

    @Test func `top shows the loops of a running server, as text and as JSON`() throws {
        let server = try TestServer(["--threads", "2"])
        let top = try CommandLineTool.run(
            ["top", "--server", "--every", "0.1", "--seconds", "0.1"], folder: server.folder)
        #expect(top.status == 0, "\(top.error)")
        #expect(top.output.hasPrefix(server.url))
        #expect(top.output.contains(#/\n +1 +0 +0 +0 +\d+ %/#) && top.output.contains(#/\n +2 +0 +0 +0 +\d+ %/#))
        let json = try CommandLineTool.run(
            ["top", "--server", server.url, "--every", "0.1", "--seconds", "0.1", "--json"], folder: server.folder)
        let lines = json.output.split(separator: "\n")
        #expect(lines.count == 2)
        for line in lines {
            let statistics = try JSONDecoder().decode(ServerStatistics.self, from: Data(line.utf8))
            #expect(statistics.loops.count == 2)
        }
        let wrong = try CommandLineTool.run(
            ["top", "--server", server.url, "--service-secret", "wrong"], folder: server.folder)
        #expect(wrong.status == 1 && wrong.error.contains("[-11003]"))
    }

    @Test(arguments: [
        ["top", "4711", "--server"], ["top", "--service-id", "x"], ["serve", "--threads", "0"],
        ["serve", "--udp-port", "9-8"], ["serve", "--udp-port", "0-3"], ["serve", "--udp-port", "1-2-3"],
        ["serve", "--udp-port", "7000-7001", "--threads", "3"],
    ])
    func `flags that do not fit together are refused`(arguments: [String]) throws {
        let result = try CommandLineTool.run(arguments, folder: TemporaryFolder())
        #expect(result.status == 2, "\(result.error)")
    }
}
