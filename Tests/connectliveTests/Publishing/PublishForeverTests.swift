import ConnectLiveSDK
import Foundation
import PeerIO
import Synchronization
import Testing
import TestSupport

@testable import RoomClient
@testable import connectlive

@Suite struct PublishForeverTests {
    @Test func `pauses double up to half a minute, are shortened at random, and start over after a stay`() {
        var random = Seeded(3)
        var delay = RejoinDelay()
        let pauses = (0..<40).map { _ in delay.after(stay: .zero, using: &random) }
        for (pause, longest) in zip(pauses, [1, 2, 4, 8, 16] + [Int](repeating: 30, count: 35)) {
            #expect(pause <= .seconds(longest) && pause >= .seconds(longest) / 2)
        }
        #expect(Set(pauses.suffix(35)).count > 30)
        #expect(delay.after(stay: RejoinDelay.longStay, using: &random) <= RejoinDelay.first)
    }

    @Test func `publishing goes on while nobody reads its messages`() throws {
        let folder = TemporaryFolder()
        let manager = try NotificationSocket(in: folder)
        let full = Pipe()
        let writer = full.fileHandleForWriting.fileDescriptor
        let flags = fcntl(writer, F_GETFL)
        try #require(fcntl(writer, F_SETFL, flags | O_NONBLOCK) == 0)
        let bytes = [UInt8](repeating: 0x20, count: 4096)
        while write(writer, bytes, bytes.count) > 0 {}
        try #require(fcntl(writer, F_SETFL, flags) == 0)
        // Nothing listens there.
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--test-pattern", "--forever"], folder: folder,
            environment: [
                "NOTIFY_SOCKET": manager.path, "CONNECTLIVE_SERVER": "ws://127.0.0.1:1",
                "CONNECTLIVE_SERVICE_ID": "home", "CONNECTLIVE_SERVICE_SECRET": Self.secret,
            ], errors: full)
        var messages: [String] = []
        #expect(
            publisher.wait(seconds: 30) {
                messages += manager.messages
                return messages.count { $0.contains("The next attempt is in") } > 1
            }, "\(messages)")
        kill(publisher.process.processIdentifier, SIGTERM)
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    @Test func `publishing outlives its server, and the service manager learns the state`() throws {
        let folder = TemporaryFolder()
        let manager = try NotificationSocket(in: folder)
        var server: TestServer? = try TestServer(["--service-id", "home", "--service-secret", Self.secret])
        let port = try #require(server?.port)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--test-pattern", "--forever"], folder: folder,
            environment: [
                "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000",
                "CONNECTLIVE_SERVER": "ws://127.0.0.1:\(port)", "CONNECTLIVE_SERVICE_ID": "home",
                "CONNECTLIVE_SERVICE_SECRET": Self.secret,
            ])
        _ = try publisher.waitForText("Connected to the room kitchen as p-")
        server?.tool.interrupt()
        let lost = try publisher.waitForText("The connection to the server is lost; trying again until it is back.")
        #expect(lost.contains("The server is shutting down."), "\(lost)")
        #expect(try server?.tool.finish(seconds: 20).status == 0)
        server = nil
        // The kernel's queue has room for ten messages.
        _ = manager.messages
        server = try TestServer(
            ["--listen", "127.0.0.1:\(port)", "--service-id", "home", "--service-secret", Self.secret])
        _ = try publisher.waitForText("as another participant: p-")
        kill(publisher.process.processIdentifier, SIGTERM)
        let result = try publisher.finish(seconds: 20)
        #expect(result.status == 0)
        let messages = manager.messages
        #expect(messages.count { $0 == "READY=1" } == 1)
        #expect(messages.contains("WATCHDOG=1"))
        #expect(messages.contains { $0.hasPrefix("STATUS=") && $0.contains("The connection to the server is lost") })
        #expect(messages.contains { $0.hasPrefix("STATUS=Back in the room after ") })
        #expect(messages.last == "STOPPING=1")
    }

    @Test func `a transport thread that hangs stops the signs of life, and one that continues resumes them`()
        async throws
    {
        let folders = [TemporaryFolder(), TemporaryFolder()]
        func stay(reportingTo socket: NotificationSocket) async -> LastingStay {
            LastingStay(await ServiceManager.connect(["NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "20000"]))
        }
        let (socket, other) = (try NotificationSocket(in: folders[0]), try NotificationSocket(in: folders[1]))
        let (inRoom, inNone) = (await stay(reportingTo: socket), await stay(reportingTo: other))
        inRoom.present.withLock { $0 = ConnectLive.createRoom(config: Config(), delegate: Guest(.unlimited)) }
        let signs = [inRoom, inNone].map { stay in Task { await stay.giveSignsOfLife() } }
        await eventually("signs of life") { socket.messages.count >= 3 }
        let (hanging, end) = (Collected<Bool>(), DispatchSemaphore(value: 0))
        let isAccepted = RoomLoop.shared.execute {
            hanging.append(true)
            end.wait()
        }
        #expect(isAccepted)
        await eventually("the hang") { hanging.count == 1 }
        let (before, others) = (socket.messages.count, other.messages.count)
        await eventually("20 signs of the one that needs no transport") { other.messages.count >= others + 20 }
        // One may have been on its way, because the thread responded before the hang.
        #expect(socket.messages.count <= before + 1)
        end.signal()
        await eventually("signs of life") { socket.messages.count >= before + 3 }
        for sign in signs {
            sign.cancel()
            await sign.value
        }
        #expect(socket.messages.allSatisfy { $0 == "WATCHDOG=1" })
    }

    @Test(.timeLimit(.minutes(1)))
    func `a service manager that does not read does not hold up the end`() async throws {
        let folder = TemporaryFolder()
        let socket = try NotificationSocket(in: folder)
        let manager = try #require(await ServiceManager.connect(["NOTIFY_SOCKET": socket.path]))
        // The kernel's queue has room for ten or so.
        for _ in 0..<12 { await manager.isAlive() }
        await manager.stopping()
        #expect(socket.messages.first == "WATCHDOG=1")
    }

    @Test func `a camera that is not plugged in shows a slate`() throws {
        let server = try TestServer()
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", "serial:NONE", "--mic", "none", "--forever"],
            folder: server.folder)
        _ = try publisher.waitForText("Connected to the room kitchen as p-")
        let viewer = try CommandLineTool(["view", "--room", "kitchen", "--no-window"], folder: server.folder)
        _ = try viewer.waitForText("waits: waiting for the camera")
        _ = try viewer.waitForText("frames/s")
        viewer.interrupt()
        #expect(try viewer.finish(seconds: 20).status == 0)
    }

    @Test func `a viewer waits for its server, and outlives it`() async throws {
        let folder = TemporaryFolder()
        let flags = ["--service-id", "home", "--service-secret", Self.secret]
        var server: TestServer? = try TestServer(flags)
        let port = try #require(server?.port)
        server = nil
        let environment = [
            "CONNECTLIVE_SERVER": "ws://127.0.0.1:\(port)", "CONNECTLIVE_SERVICE_ID": "home",
            "CONNECTLIVE_SERVICE_SECRET": Self.secret,
        ]
        let manager = try NotificationSocket(in: folder)
        let viewer = try CommandLineTool(
            [
                "view", "--room", "kitchen", "--no-window", "--forever", "--report", "view.json", "--snapshot",
                "last.png",
            ],
            folder: folder, environment: environment.merging(["NOTIFY_SOCKET": manager.path]) { $1 })
        _ = try viewer.waitForText("The next attempt is in")
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--test-pattern", "--forever"], folder: folder, environment: environment)
        for count in 1...2 {
            server = try TestServer(["--listen", "127.0.0.1:\(port)"] + flags)
            let text = count == 1 ? "Connected to the room kitchen as p-" : "as another participant: p-"
            _ = try viewer.waitForText(text)
            _ = try publisher.waitForText(text)
            // The second server's video is seen at the end.
            if count == 1 { server = nil }
        }
        await eventually(within: 30, "the status") {
            manager.messages.contains { $0.hasPrefix("STATUS=") && $0.contains("frames/s") }
        }
        viewer.interrupt()
        #expect(try viewer.finish(seconds: 20).status == 0)
        #expect(manager.messages.first == "READY=1" && manager.messages.last == "STOPPING=1")
        let report = try #require(
            try JSONSerialization.jsonObject(
                with: Data(contentsOf: URL(fileURLWithPath: folder.file("view.json")))) as? [String: Any])
        #expect(report["framesRendered"] as? Int ?? 0 > 0)
        #expect(FileManager.default.fileExists(atPath: folder.file("last.png")))
        publisher.interrupt()
        _ = try publisher.finish(seconds: 20)
        withExtendedLifetime(server) {}
    }

    @Test(arguments: [["publish", "--test-pattern"], ["view", "--no-window"]])
    func `an address that no server can have ends it at once`(command: [String]) throws {
        let result = try CommandLineTool.run(
            command + ["--room", "kitchen", "--forever", "--server", "htp://x"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("htp://x"))
    }

    @Test func `the service manager and standard error learn that the camera is missing`() async throws {
        let server = try TestServer()
        let manager = try NotificationSocket(in: server.folder)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", "serial:NONE", "--mic", "none", "--forever"],
            folder: server.folder, environment: ["NOTIFY_SOCKET": manager.path])
        _ = try publisher.waitForText("connectlive: The camera is away")
        await eventually("the status") {
            manager.messages.contains { $0.hasPrefix("STATUS=waiting for the camera: ") }
        }
        kill(publisher.process.processIdentifier, SIGTERM)
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    @Test func `the status begins with the reason for which the video waits`() {
        let text = StatusLine.publishing(RoomStatistics(), .waiting(reason: "camera unplugged"))
        #expect(text.hasPrefix("camera unplugged: "))
        #expect(!StatusLine.publishing(RoomStatistics(), .live).contains(":"))
    }

    @Test func `the status names the step for which a publisher waits`() {
        var statistics = RoomStatistics()
        #expect(StatusLine.publishing(statistics, .live) == "connecting to the room")
        statistics.connectMilliseconds = 120
        #expect(StatusLine.publishing(statistics, .live).hasPrefix("in the room; waiting for the server"))
    }

    @Test func `a file that cannot be read ends it at once`() throws {
        let result = try CommandLineTool.run(
            ["publish", "--room", "kitchen", "--file", "/nonexistent.mp4", "--forever"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("/nonexistent.mp4"))
    }

    private static let secret = "a secret of at least 32 characters"
}
