import ConnectLiveSDK
import Foundation
import Glibc
import MediaNodes
import RoomProtocol
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import ConnectLiveSDK
@testable import FrameSocket
@testable import RoomClient

/// Sharing a screen in a room on a scripted link. The test is the extension, unless it names a program.
@Suite(.timeLimit(.minutes(1))) struct ScreenShareTests {
    private let scripted = ScriptedRoom()
    private let group = ScratchGroup()
    private let statuses = Collected<ScreenShareData.ExtensionStatus>()
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    private func request(_ program: String = "") throws {
        try room.requestScreenShare(appGroup: group.name, extensionName: program) { [statuses] in statuses.append($0) }
    }

    /// The statuses so far. Waits for callbacks that are queued.
    private var told: [ScreenShareData.ExtensionStatus] {
        _ = scripted.heard
        return statuses.all
    }

    private func waitFor(_ wanted: [ScreenShareData.ExtensionStatus]) async throws {
        try await requireEventually("\(wanted)") { told == wanted }
    }

    /// Connects as the extension, once the application listens.
    private func connect() async throws -> FrameFeed {
        var feed: FrameFeed?
        try await requireEventually("the connection") {
            feed = try? FrameFeed(socket: group.folder.socket, name: "screen")
            return feed != nil
        }
        return try #require(feed)
    }

    /// Sends frames until the room has the video.
    private func share(_ feed: FrameFeed) async throws {
        try await requireEventually("the publication") {
            _ = try? feed.send { frame in
                for index in 0..<64 * 48 { frame.storeBytes(of: 128, toByteOffset: index, as: UInt8.self) }
            }
            return link.calls.contains(.publish)
        }
    }

    private func waitForStop(_ feed: FrameFeed) async throws -> StopReason? {
        var reason: StopReason?
        try await requireEventually("the stop") {
            for case .stop(let found) in try feed.events() where reason == nil { reason = found }
            return reason != nil
        }
        return reason
    }

    private func code(_ body: () throws -> Void) -> Int? {
        do {
            try body()
            return nil
        } catch {
            return (error as? ConnectLiveError)?.code
        }
    }

    @Test func `the frames of an extension become a video of the participant, which the application has not created`()
        async throws
    {
        scripted.join()
        try request()
        let feed = try await connect()
        try await waitFor([.broadcastReady])
        #expect((feed.wanted.width, feed.wanted.height) == (1280, 720))
        #expect(!link.calls.contains(.publish))
        try await share(feed)
        try await waitFor([.broadcastReady, .broadcastStarted])
        #expect(link.publishedAttributes.map(\.video.extraValue) == ["screen"])
        #expect(scripted.heard == ["connected"] && room.localParticipant.videos.isEmpty)
        #expect(group.value(.extensionStatus) == "2" && group.value(.appStatus) == "1")
        feed.finish()
        try await waitFor([.broadcastReady, .broadcastStarted, .broadcastClosed])
        try await requireEventually("the end of the publication") { link.calls.last == .unpublish([1, 2]) }
        #expect(scripted.heard == ["connected"] && scripted.errors.isEmpty)
    }

    @Test(arguments: [false, true])
    func `the application ends a share: the extension learns why, and the application gets no status`(
        isLeftRoom: Bool
    ) async throws {
        scripted.join()
        try request()
        let feed = try await connect()
        try await waitFor([.broadcastReady])
        room.stopScreenShare(isLeftRoom: isLeftRoom)
        #expect(try await waitForStop(feed) == (isLeftRoom ? .meetingFinished : .finished))
        #expect(told == [.broadcastReady])
        try await requireEventually("the group") { group.value(.appStatus) == (isLeftRoom ? "3" : "2") }
        #expect(group.value(.requestData) == nil)
        // Another share needs no wait.
        try request()
        try await requireEventually("another share") { group.value(.requestData) != nil }
        let next = try await connect()
        try await waitFor([.broadcastReady, .broadcastReady])
        next.finish()
    }

    @Test func `the end of a room ends its share`() async throws {
        scripted.join()
        try request()
        let feed = try await connect()
        try await waitFor([.broadcastReady])
        link.send(.ended(.destroyed, nil))
        #expect(try await waitForStop(feed) == .meetingFinished)
        #expect(told == [.broadcastReady, .broadcastClosed])
        #expect(code { try request() } == 1907)
    }

    @Test func `a room that does not take the video ends the share with an error`() async throws {
        link.answer { $0 == .publish ? .failure(RoomError(.publishRefused, "There is no place.")) : .success }
        scripted.join()
        try request()
        let feed = try await connect()
        try await share(feed)
        try await waitFor([.broadcastReady, .broadcastStarted, .broadcastClosed])
        #expect(scripted.errors == [1441])
        #expect(try await waitForStop(feed) == .finished)
    }

    @Test func `a share that is stopped before it begins opens nothing, and a connection without a greeting ends none`()
        async throws
    {
        scripted.join()
        let room = try #require(self.room as? RoomSession)
        try request()
        room.stopScreenShare(isLeftRoom: false)
        let stopped = try #require(room.state.withLock { $0.share })
        await stopped.waitUntilGone()
        #expect(!stopped.media.capture.isRunning && group.value(.requestData) == nil)
        await #expect(throws: RoomError.self) { try await stopped.media.capture.start() }
        try request()
        try await requireEventually("the socket") { access(group.folder.socket, F_OK) == 0 }
        try await requireEventually("the request") { group.value(.requestData) != nil }
        // Another graph checks in this way whether somebody listens.
        #expect(throws: FrameSocketError.self) { try MessageListener(path: group.folder.socket) }
        let feed = try await connect()
        try await waitFor([.broadcastReady])
        feed.finish()
    }

    @Test func `an extension that falls silent ends the share with an error`() async throws {
        scripted.join()
        try request()
        let feed = try await connect()
        try await share(feed)
        try await waitFor([.broadcastReady, .broadcastStarted, .broadcastClosed])
        #expect(scripted.errors == [2031])
        #expect(try await waitForStop(feed) != nil)
    }

    @Test func `each obstacle to a share is an error`() throws {
        #expect(code { try request() } == 1907)
        scripted.join()
        for name in ["", ".hidden", "a/b", "group of spaces", String(repeating: "g", count: 49)] {
            #expect(code { try room.requestScreenShare(appGroup: name, extensionName: "") { _ in } } == 1906)
        }
        #expect(code { try request("no-such-extension") } == 2019)
        try request()
        #expect(code { try request() } == 1441)
        #expect(told.isEmpty)
    }

    @Test func `a size or rate out of range is an error`() {
        var options = ScreenShareOptions()
        options.width = 8
        let other = ScriptedRoom(screenShare: options)
        other.join()
        #expect(code { try other.room.requestScreenShare(appGroup: group.name, extensionName: "") { _ in } } == 1905)
    }

    @Test func `the extension's program gets the socket and the group, and ends with the share`() async throws {
        let folder = TemporaryFolder()
        let program = try folder.program(
            """
            echo "$CONNECTLIVE_APP_GROUP $CONNECTLIVE_FRAME_SOCKET" > \(folder.path)/told.new
            mv \(folder.path)/told.new \(folder.path)/told
            exec sleep 1000
            """)
        scripted.join()
        try request(program)
        try await requireEventually("the program") { folder.text("told") != nil }
        #expect(folder.text("told") == "\(group.name) \(group.folder.socket)\n")
        room.stopScreenShare(isLeftRoom: false)
    }

    @Test func `a program that fails ends the share with its status`() async throws {
        let folder = TemporaryFolder()
        scripted.join()
        try request(try folder.program("exit 3"))
        try await waitFor([.broadcastClosed])
        #expect(scripted.errors == [2020])
        guard case .error(_, let message, _) = scripted.listener.events.last else { return }
        #expect(message.contains("exited with status 3"))
    }
}

/// A group of one test.
private final class ScratchGroup: Sendable {
    let name = "test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    let folder: ShareGroup

    init() {
        do {
            folder = try ShareGroup(name)
        } catch {
            preconditionFailure("The folder of a group: \(error)")
        }
    }

    func value(_ key: ScreenShareData.Keys) -> String? {
        (try? String(contentsOfFile: "\(folder.folder)/\(key.rawValue)", encoding: .utf8))?
            .trimmingCharacters(in: .newlines)
    }

    /// The process that the application has started for this group.
    var program: Int32? {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.lazy.compactMap { Int32($0) }.first { process in
            let environment = FileManager.default.contents(atPath: "/proc/\(process)/environ") ?? Data()
            return environment.split(separator: 0).contains(Data("CONNECTLIVE_APP_GROUP=\(name)".utf8))
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.folder) }
}

extension TemporaryFolder {
    /// The path of a new program: a shell script with these lines.
    fileprivate func program(_ lines: String) throws -> String {
        try "#!/bin/sh\n\(lines)\n".write(toFile: file("program"), atomically: true, encoding: .utf8)
        chmod(file("program"), 0o700)
        return file("program")
    }

    fileprivate func text(_ name: String) -> String? { try? String(contentsOfFile: file(name), encoding: .utf8) }
}

/// The extension's end, in a program that is the application, too.
@Suite(.timeLimit(.minutes(1))) struct ScreenExtensionTests {
    private typealias End = (code: ScreenShareData.ExtensionErrorCode, message: String)

    private let scripted = ScriptedRoom()
    private let group = ScratchGroup()
    private let statuses = Collected<ScreenShareData.ExtensionStatus>()
    private let ends = Collected<ScreenShareData.ExtensionErrorCode>()

    private func request() throws {
        try scripted.room.requestScreenShare(appGroup: group.name, extensionName: "") { [statuses] in
            statuses.append($0)
        }
    }

    private func share() throws -> any ScreenShare {
        let share = try ConnectLive.createScreenShare(appGroup: group.name)
        share.start { [ends] code, _ in ends.append(code) }
        return share
    }

    private func started() async throws -> any ScreenShare {
        scripted.join()
        try request()
        try await requireEventually("the socket") { access(group.folder.socket, F_OK) == 0 }
        // It listens a moment later.
        try await requireEventually("the request") { group.value(.requestData) != nil }
        let share = try share()
        try await requireEventually("the extension") { !statuses.all.isEmpty }
        return share
    }

    private func waitForEnd(_ code: ScreenShareData.ExtensionErrorCode) async throws {
        try await requireEventually("\(code)") { ends.all == [code] }
    }

    private func send(_ share: any ScreenShare, _ format: PixelBuffer.Format = .i420) throws {
        let frame = try #require(PixelBuffer(width: 320, height: 200, format: format))
        share.sendVideoFrame(sampleBuffer: SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now))
    }

    @Test func `without a request, a share is invalid data`() async throws {
        _ = try share()
        try await waitForEnd(.invalidData)
    }

    @Test(arguments: [(false, ScreenShareData.ExtensionErrorCode.stopBroadcast), (true, .meetingFinished)])
    func `the extension learns why the application has ended the share`(
        isLeftRoom: Bool, code: ScreenShareData.ExtensionErrorCode
    ) async throws {
        let share = try await started()
        scripted.room.stopScreenShare(isLeftRoom: isLeftRoom)
        try await waitForEnd(code)
        await withCheckedContinuation { done in share.stop { done.resume() } }
        #expect(ends.count == 1)
    }

    @Test func `a second extension is refused, and the first one goes on`() async throws {
        let share = try await started()
        _ = try self.share()
        try await waitForEnd(.broadcastFailed)
        try await requireEventually("frames") {
            try send(share)
            return statuses.all.contains(.broadcastStarted)
        }
    }

    @Test func `stop ends the share without an error, and the application learns it`() async throws {
        let share = try await started()
        await withCheckedContinuation { done in share.stop { done.resume() } }
        try await requireEventually("the end") { statuses.all == [.broadcastReady, .broadcastClosed] }
        await withCheckedContinuation { done in share.stop { done.resume() } }
        #expect(ends.all.isEmpty)
        share.start { [ends] code, _ in ends.append(code) }
        try await waitForEnd(.broadcastFailed)
    }

    @Test func `a frame that cannot be sent ends the share`() async throws {
        let share = try await started()
        let frame = try #require(PixelBuffer(width: 8, height: 8))
        share.sendVideoFrame(sampleBuffer: SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now))
        try await waitForEnd(.broadcastFailed)
        try await requireEventually("the end") { statuses.all == [.broadcastReady, .broadcastClosed] }
    }

    @Test func `frames of each format and another size arrive, and none while the share is paused`() async throws {
        let share = try await started()
        let room = try #require(scripted.room as? RoomSession)
        let feed = try #require(room.state.withLock { $0.share }?.media.capture.feed)
        for format in PixelBuffer.Format.allCases {
            let before = feed.state.taken
            try await requireEventually("\(format)") {
                try send(share, format)
                return feed.state.taken > before
            }
        }
        share.pause()
        try await requireEventually("the pause") { feed.state.isFeederPausing }
        let paused = feed.state.received
        for _ in 0..<10 { try send(share) }
        share.resume()
        try await requireEventually("more frames") {
            try send(share)
            return feed.state.received > paused
        }
        #expect(feed.state.received < paused + 10)
        try await requireEventually("the end of the pause") {
            try send(share)
            return !feed.state.isFeederPausing
        }
    }
}

extension SDKTests {
    /// Screens in a real room.
    @Suite(.timeLimit(.minutes(1))) struct ScreenShareInRoom {
        private let group = ScratchGroup()
        private static let program = BuiltPackage.program("screen-extension").path

        @Test func `the example program names itself in the one line about its end`() throws {
            let extensionProgram = Process()
            extensionProgram.executableURL = URL(fileURLWithPath: Self.program)
            extensionProgram.environment = ["CONNECTLIVE_APP_GROUP": group.name, "DISPLAY": ":0"]
            let outcome = try extensionProgram.runToEnd(within: 20)
            let lines = outcome.output.split(separator: "\n")
            #expect(outcome.status == 1 && lines.count == 1, "\(outcome)")
            #expect(lines.first?.hasPrefix("screen-extension: The frame socket ") == true, "\(outcome)")
        }

        @Test func `participants see the frames of the extension as a video of its application's participant`()
            async throws
        {
            try await onStage { _ in
                let (host, guest) = (Client(), Client())
                let me = try await host.join("screens").first
                _ = try await guest.join("screens")
                try host.room.requestScreenShare(appGroup: group.name, extensionName: "") { _ in }
                try await requireEventually("the request") { group.value(.requestData) != nil }
                let share = try ConnectLive.createScreenShare(appGroup: group.name)
                share.start { code, message in Issue.record("\(code): \(message)") }
                let number = Collected<UInt32>()
                func send() throws {
                    number.append(0)
                    let frame = try #require(PixelBuffer(width: 1280, height: 720))
                    frame.draw {
                        $0.fill(luma: 90)
                        $0.draw(barCode: UInt32(number.count))
                    }
                    share.sendVideoFrame(sampleBuffer: SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now))
                }
                let pump = Task {
                    while !Task.isCancelled {
                        try send()
                        try await Task.sleep(for: .milliseconds(60))
                    }
                }
                let video = try await guest.listener.waitForVideo()
                #expect(video.owner == me && video.extraValue == "screen")
                let watcher = try await guest.watch(video)
                try await requireEventually("bar codes") {
                    watcher.sights.compactMap(\.barCode).count >= 5
                }
                pump.cancel()
                let codes = watcher.sights.compactMap(\.barCode)
                #expect(codes == codes.sorted() && codes.allSatisfy { (1...UInt32(number.count)).contains($0) })
                #expect(watcher.sights.allSatisfy { $0.width == 1280 })
                await withCheckedContinuation { done in share.stop { done.resume() } }
                try await requireEventually("the end") {
                    guest.listener.names.contains("videoGone")
                }
                try await guest.leave()
                try await host.leave()
            }
        }

        @Test func `in a Wayland session, the example program passes on the screen that the desktop's portal offers`()
            async throws
        {
            let desktop = try Fixture.pipeWireServer("--portal", "choose")
            // The portal's descriptor is the only way to PipeWire.
            let bus = try #require(desktop.answer.environment["DBUS_SESSION_BUS_ADDRESS"])
            let environment = EnvironmentOverride([
                "DISPLAY": nil, "WAYLAND_DISPLAY": "wayland-0", "DBUS_SESSION_BUS_ADDRESS": bus,
            ])
            try await onStage { _ in
                let (host, guest) = (Client(), Client())
                _ = try await host.join("portals")
                _ = try await guest.join("portals")
                try host.room.requestScreenShare(appGroup: group.name, extensionName: Self.program) { _ in }
                let video = try await guest.listener.waitForVideo()
                let watcher = try await guest.watch(video)
                try await requireEventually("frames") { watcher.sights.count >= 5 }
                let room = try #require(host.room as? RoomSession)
                let sharing = try #require(room.state.withLock { $0.share })
                host.room.stopScreenShare(isLeftRoom: false)
                await sharing.waitUntilGone()
                try await guest.leave()
                try await host.leave()
            }
            withExtendedLifetime((desktop, environment)) {}
        }

        @Test
        func `the example program captures a display, is paused and resumed by signals, and ends with the share`()
            async throws
        {
            let display = try Fixture.display()
            let environment = EnvironmentOverride(["DISPLAY": display.answer.display, "WAYLAND_DISPLAY": nil])
            defer { withExtendedLifetime(environment) {} }
            let statuses = Collected<ScreenShareData.ExtensionStatus>()
            try await onStage { _ in
                let (host, guest) = (Client(), Client())
                _ = try await host.join("displays")
                _ = try await guest.join("displays")
                try host.room.requestScreenShare(
                    appGroup: group.name, extensionName: Self.program
                ) { statuses.append($0) }
                let video = try await guest.listener.waitForVideo()
                let watcher = try await guest.watch(video)
                try await requireEventually("frames") { watcher.sights.count >= 5 }
                #expect(statuses.all == [.broadcastReady, .broadcastStarted])
                let room = try #require(host.room as? RoomSession)
                let sharing = try #require(room.state.withLock { $0.share })
                let feed = try #require(sharing.media.capture.feed)
                let program = try #require(group.program)
                kill(program, SIGTSTP)
                try await requireEventually("the pause") { feed.state.isFeederPausing }
                let paused = feed.state.received
                kill(program, SIGCONT)
                try await requireEventually("frames after the pause") { feed.state.received > paused }
                #expect(!feed.state.isFeederPausing)
                host.room.stopScreenShare(isLeftRoom: false)
                // By its own will, before SIGTERM.
                await sharing.waitUntilGone()
                try await guest.leave()
                try await host.leave()
            }
        }
    }
}
