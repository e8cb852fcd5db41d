import ConnectLiveSDK
import FrameSocket
import Foundation
import Glibc
import MediaNodes
import RoomProtocol
import Testing
import TestSupport

@testable import ConnectLiveSDK
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
        try await requireEventually("the socket") { access(group.folder.socket, F_OK) == 0 }
        return try FrameFeed(socket: group.folder.socket, name: "screen")
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
        #expect(group.value(.appStatus) == (isLeftRoom ? "3" : "2") && group.value(.requestData) == nil)
        // Another share needs no wait.
        try request()
        try await requireEventually("another share") { group.value(.requestData) != nil }
        _ = try await connect()
        try await waitFor([.broadcastReady, .broadcastReady])
    }

    @Test func `the end of a room ends its share`() async throws {
        scripted.join()
        try request()
        let feed = try await connect()
        try await waitFor([.broadcastReady])
        link.send(.ended(.destroyed, nil))
        #expect(try await waitForStop(feed) == .meetingFinished)
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
        // Its name is valid.
        folder = try! ShareGroup(name)
    }

    func value(_ key: ScreenShareData.Keys) -> String? {
        (try? String(contentsOfFile: "\(folder.folder)/\(key.rawValue)", encoding: .utf8))?
            .trimmingCharacters(in: .newlines)
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
