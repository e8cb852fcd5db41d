import Foundation
import FrameSocket
import MediaGraph
import MediaTesting
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// Runs the kit's checks on a built-in capturer, in a process of its own, because they measure the whole process.
private enum Built {
    /// Begins the last line that the process prints.
    static let mark = "REPORT "

    /// `reopenings` is for `make soak`. `make test` makes at most 20, which show a leaked descriptor or thread per
    /// round. `unasked` are omitted checks; their reasons are at the calls.
    static func judge(
        _ stand: PipelineStand, _ rehearsal: Rehearsal = Rehearsal(), reopenings: Int = 500, unasked: Set<String> = []
    ) async throws {
        let checks = Set(Conformance.checks(for: .capturer).map(\.name)).subtracting(unasked)
        let rounds = Soak.rounds(min(reopenings, 20), soak: reopenings)
        let options = Conformance.Options(seconds: Soak.isOn ? 2 : 1.2, reopenings: rounds, checks: checks)
        let report = await Conformance.test(stand, rehearsal, options)
        Repeated.say(mark + String(decoding: try JSONEncoder().encode(report), as: UTF8.self))
    }

    /// Requires that all checks pass except `silent`, which do not apply to the capturer. Behaviour with a slow
    /// consumer depends on the pipeline's queues: OverloadTests.
    static func expect(
        _ result: ExitTest.Result?, silent: Set<String>, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let said = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        let line = try #require(said.split(separator: "\n").last { $0.hasPrefix(mark) }, "\(said)")
        let report = try JSONDecoder().decode(ConformanceReport.self, from: Data(line.dropFirst(mark.count).utf8))
        print(report)
        #expect(report.isPassed, "\(report)", sourceLocation: sourceLocation)
        let found = Set(report.results.filter { $0.verdict == .notApplicable }.map(\.check))
        // On a machine that is too busy to judge timestamps, that check reports so.
        #expect(
            found.subtracting(["clock"]) == silent.union(["slow-consumer"]), "\(report)", sourceLocation: sourceLocation
        )
    }

    static func pattern() async throws {
        try await judge(try PipelineStand("test-pattern"))
    }

    static func tone() async throws {
        try await judge(try PipelineStand("test-pattern", output: "audio"))
    }

    static func file() async throws {
        let rehearsal = Rehearsal(
            settings: ["path": .text(Checkout.clip)], failing: [["path": "/nonexistent/clip.mp4"]])
        try await judge(try PipelineStand("file"), rehearsal)
    }

    /// Pushed frames have the size and rate of the settings.
    static func bypass() async throws {
        let stand = try PipelineStand("bypass", leavingUntried: ["format"]) { input, settings in
            let width = settings["width"]?.integer ?? 0
            let height = settings["height"]?.integer ?? 0
            let rate = settings["fps"]?.number ?? 30
            let luma = [UInt8](repeating: 80, count: width * height)
            let chroma = [UInt8](repeating: 128, count: (width + 1) / 2 * ((height + 1) / 2))
            let pace = FramePace(period: 1 / rate)
            while !Task.isCancelled {
                input.push(
                    luma: luma, chromaBlue: chroma, chromaRed: chroma, width: width, height: height, at: .now)
                try await Task.sleep(for: .nanoseconds(Int64(pace.wait() * 1e9)))
            }
        }
        try await judge(stand)
    }

    static func screen() async throws {
        let fixture = try Fixture.display("--size", "640x360")
        let display = SettingValue.text(fixture.answer.display)
        // LostDisplayTests end the display.
        let rehearsal = Rehearsal(
            settings: ["display": display],
            failing: [["display": ":987"], ["window": "Nothing"], ["x": 639, "width": 100]])
        let stand = try PipelineStand("screen", leavingUntried: ["pipewire-node"])
        try await judge(stand, rehearsal)
    }

    static func rtsp() async throws {
        let server = try Fixture.rtspServer()
        let rehearsal = Rehearsal(
            settings: ["url": .text(server.answer.url + "/h264"), "away": "end"],
            failing: [
                ["url": .text(server.answer.url + "/nothing")], ["url": "rtsp://127.0.0.1:1/h264"], ["url": "camera"],
            ],
            vanish: { server.end() })
        // The first frames of a network camera arrive together and with one timestamp: rtspsrc's jitter buffer releases
        // them so until it has learnt the camera's clock. RTSPTests judge later timestamps by flashes and beeps.
        try await judge(try PipelineStand("rtsp"), rehearsal, unasked: ["timestamps", "clock", "pacing"])
    }

    static func microphone() async throws {
        let fixture = try Fixture.soundServer()
        let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
        defer { withExtendedLifetime(environment) {} }
        let server = fixture.answer.process
        let rehearsal = Rehearsal(
            settings: ["away": "end"], failing: [["device": "no-such-microphone", "away": "end"]],
            vanish: { kill(server, SIGKILL) })
        try await judge(try PipelineStand("microphone", output: "audio"), rehearsal, reopenings: 50)
    }

    /// A program that is not restarted ends like a lost device. With a restart, the frames continue.
    private static func program(_ kind: String, _ command: String) async throws {
        let rehearsal = Rehearsal(
            settings: [
                "command": .text(command), "width": .integer(size.width), "height": .integer(size.height),
                "fps": .integer(rate), "restart": false,
            ],
            failing: [
                ["command": "/nonexistent/camera"], ["command": "/bin/false"],
                ["command": "/bin/sh -c 'echo no camera >&2; exit 1'", "away": "end", "restart": true],
            ],
            vanish: {
                for program in MediaNodesTests.ProcessTests.children(of: getpid()) { kill(program, SIGKILL) }
            })
        // A program writes one fixed format: ProcessTests, FeedTests and ExecTests try the others.
        try await judge(try PipelineStand(kind, leavingUntried: ["format"]), rehearsal)
    }

    private static let size = (width: 320, height: 240)
    private static let rate = 60

    static func process() async throws {
        try await program("process", "/usr/bin/python3 -IS '\(Feeder.example)'")
    }

    static func exec() async throws {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let text = """
            import sys, time
            picture, due = bytes(\(size.width * size.height * 3 / 2)), time.monotonic()
            while True:
                sys.stdout.buffer.write(picture)
                sys.stdout.flush()
                due += 1 / \(rate)
                time.sleep(max(due - time.monotonic(), 0))
            """
        writeFile(Array(text.utf8), to: folder.path + "/write.py")
        try await program("exec", "/usr/bin/python3 -IS '\(folder.path)/write.py'")
    }

    /// A feeder that connects again whenever a graph listens.
    static func feed() async throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/feed.sock"
        let taken = try MessageListener(path: folder.path + "/taken.sock")
        defer { withExtendedLifetime((folder, taken)) {} }
        let feeder = Thread {
            while true {
                try? give(to: FrameFeed(socket: path))
                usleep(1000)
            }
        }
        feeder.start()
        let rehearsal = Rehearsal(
            settings: [
                "socket": .text(path), "width": .integer(size.width), "height": .integer(size.height),
                "fps": .integer(rate),
            ],
            failing: [["socket": "/nonexistent/feed.sock"], ["socket": .text(folder.path + "/taken.sock")]])
        try await judge(try PipelineStand("feed", leavingUntried: ["format"]), rehearsal)
    }

    /// Sends frames at the requested rate until the graph ends.
    private static func give(to feed: FrameFeed) throws {
        let pace = FramePace(
            period: Double(feed.wanted.rateDenominator) / Double(feed.wanted.rateNumerator))
        while try !feed.isStopped {
            try feed.send(waiting: 1) { _ in }
            usleep(UInt32(pace.wait() * 1e6))
        }
    }

    /// The pace of a camera: frames that a stall of the machine missed are left out, and do not follow in a burst.
    private struct FramePace {
        let period: Double
        private let start = MediaTime.now

        init(period: Double) { self.period = period }

        /// The seconds to the next frame that is still to come.
        func wait() -> Double {
            let elapsed = MediaTime.now.seconds(since: start)
            return ((elapsed / period).rounded(.down) + 1) * period - elapsed
        }
    }
}

extension MediaNodesTests {
    /// The built-in capturers, under the kit for plugins. The camera is not among them: it needs a V4L2
    /// device, which without hardware only an emulated machine has; Tests/guest checks it there.
    @Suite struct BuiltInConformanceTests {
        @Test("The test pattern's video passes the kit's checks")
        func pattern() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.pattern()
            }
            try Built.expect(result, silent: ["failure-while-starting", "format-change", "vanishing", "errors"])
        }

        @Test("The test pattern's audio passes the kit's checks")
        func tone() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.tone()
            }
            try Built.expect(
                result, silent: ["failure-while-starting", "format-change", "vanishing", "errors"])
        }

        @Test("A file passes the kit's checks")
        func file() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.file()
            }
            try Built.expect(result, silent: ["format-change", "vanishing"])
        }

        @Test("Frames pushed by a program pass the kit's checks")
        func bypass() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.bypass()
            }
            try Built.expect(result, silent: ["failure-while-starting", "format-change", "vanishing", "errors"])
        }

        @Test("The screen of an X display passes the kit's checks")
        func screen() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.screen()
            }
            try Built.expect(result, silent: ["format-change", "vanishing"])
        }

        @Test("A network camera passes the kit's checks, and reports its loss")
        func rtsp() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.rtsp()
            }
            try Built.expect(result, silent: ["format-change"])
        }

        @Test("A microphone passes the kit's checks, and reports its loss")
        func microphone() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.microphone()
            }
            try Built.expect(result, silent: ["format-change"])
        }

        @Test("A program on the frame socket passes the kit's checks, and reports its end")
        func process() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.process()
            }
            try Built.expect(result, silent: ["format-change"])
        }

        @Test("A program that writes frames passes the kit's checks, and reports its end")
        func exec() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.exec()
            }
            try Built.expect(result, silent: ["format-change"])
        }

        @Test("Frames of a connecting feeder pass the kit's checks")
        func feed() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Built.feed()
            }
            try Built.expect(result, silent: ["format-change", "vanishing"])
        }

        @Test(
            "A processor that ships handles both ends of its settings, also while it runs",
            arguments: ["scale", "crop", "mirror", "rotate", "overlay", "volume", "level"])
        func processor(_ kind: String) async throws {
            let report = await Conformance.test(
                try PipelineStand(kind, output: "out"), Rehearsal(),
                Conformance.Options(checks: ["settings", "live-settings", "errors"]))
            #expect(report.failures.isEmpty, "\(report)")
        }

        @Test("A processor made of elements is tested in a pipeline")
        func elements() async throws {
            let colours = ElementsNode(
                "colours", "Changes the colours", elements: ["videobalance"],
                exposing: ["brightness": "videobalance.brightness", "hue": "videobalance.hue"], takes: .rawVideo(),
                gives: .rawVideo())
            let report = try #require(
                await Conformance.test(.elements(colours), Conformance.Options(reopenings: 5)))
            #expect(report.isPassed, "\(report)")
            let silent = report.results.filter { $0.verdict == .notApplicable }.map(\.check)
            #expect(
                Set(silent) == ["sizes", "format-change", "speed", "failure-while-starting", "errors"], "\(report)")
        }
    }
}
