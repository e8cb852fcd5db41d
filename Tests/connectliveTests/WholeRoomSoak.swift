import ClientCore
import ConnectLiveSDK
import Foundation
import MediaGraph
import PeerIO
import RTP
import RoomClient
import RoomProtocol
import Synchronization
import TestSupport
import Testing

/// A room of a browser, of applications with the SDK, and of clients that send and check packets without codecs, on a server in
/// a process of its own.
@Suite(.serialized) struct WholeRoomSoak {
    private static let (applications, packetClients) = (2, 7)

    /// The codes in all frames prove that nobody is shown an old frame, or one of another video. 200 calls in `make soak`.
    @Test(arguments: [UInt64(1)])
    func `everyone sees whom it watches, and no stale or crossed frames, through random calls`(
        seed: UInt64
    ) async throws {
        let key = ["CONNECTLIVE_SERVICE_ID": "whole", "CONNECTLIVE_SERVICE_SECRET": "a secret of a whole room"]
        let server = try TestServer(["--open"], environment: key)
        let queue = DispatchQueue(label: "callbacks")
        ConnectLive.callbackQueue = queue
        defer { ConnectLive.callbackQueue = nil }
        let (code, message) = await ConnectLive.signIn(
            serviceId: "whole", serviceSecret: "a secret of a whole room", endpoint: server.url)
        try #require(code == 0, "\(message)")
        let films = try FilmShelf(of: Self.packetClients, from: Self.applications + 1)
        let problems = Collected<String>()
        var members: [any RoomMember] = []
        for id in 1...Self.applications { members.append(ApplicationMember(id, films, problems)) }
        for id in Self.applications + 1...Self.applications + Self.packetClients {
            members.append(try PacketMember(id, films, problems, server: server.url, key))
        }
        for member in members { try await member.join() }
        for member in members { try await member.publish() }
        let browser = try BrowserMember(page: "\(server.page)?room=whole&join=1", seeing: members.count)
        try await requireEventually(within: 60, "the browser's video") {
            members.allSatisfy { $0.knownVideos.contains { $0.publisher == 0 } }
        }
        var calls = RandomMemberCalls(members, seed: seed)
        for _ in 0..<Soak.rounds(20, soak: 200) { try await calls.makeOne() }
        try await calls.settle()
        for member in members { try await member.unpublish() }
        let seen = try browser.finish()
        for problem in problems.all + browser.problems(in: seen, allKnown: calls.streams) {
            Issue.record("seed \(seed): \(problem). The calls: \(calls.made.joined(separator: ", "))")
        }
        #expect(Set(seen.map(\.stream)).count >= members.count, "the browser saw \(Set(seen.map(\.stream)))")
        for member in members { try await member.leave() }
        ConnectLive.signOut()
    }
}

/// One participant that makes calls, and checks what it gets.
protocol RoomMember: AnyObject, Sendable {
    var id: Int { get }
    /// The videos of others. The publisher 0 is the browser.
    var knownVideos: [(stream: Int, publisher: Int)] { get }
    /// The frames so far of a watched stream, without those whose number cannot be read.
    func frames(of stream: Int) -> Int
    func join() async throws
    func leave() async throws
    /// Returns when others can know the video.
    func publish() async throws
    func unpublish() async throws
    func subscribe(_ stream: Int, of publisher: Int) async throws
    func unsubscribe(_ stream: Int) async throws
    func setPaused(_ isPaused: Bool, _ stream: Int) async throws
}

/// Random calls of the members of a room, and what each of them watches.
struct RandomMemberCalls {
    private let members: [any RoomMember]
    private var random: Seeded
    /// Of each member: the videos that it watches, and whether they are paused.
    private var watched: [[Int: Bool]]
    private var isPublishing: [Bool]
    /// The publisher of each video that a member ever knew.
    private(set) var streams: [Int: Int] = [:]
    private(set) var made: [String] = []

    init(_ members: [any RoomMember], seed: UInt64) {
        self.members = members
        random = Seeded(seed)
        watched = members.map { _ in [:] }
        isPublishing = members.map { _ in true }
    }

    mutating func makeOne() async throws {
        forgetEnded()
        let index = Int.random(in: members.indices, using: &random)
        let member = members[index]
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
            made.append("\(member.id) \(isPublishing[index] ? "unpublishes" : "publishes")")
            try await isPublishing[index] ? member.unpublish() : member.publish()
            isPublishing[index].toggle()
        case 1...5:
            let free = member.knownVideos.filter { watched[index][$0.stream] == nil }
            guard let video = free.randomElement(using: &random), watched[index].count < 6 else { return }
            made.append("\(member.id) subscribes to \(video.stream) of \(video.publisher)")
            try await member.subscribe(video.stream, of: video.publisher)
            watched[index][video.stream] = false
        case 6, 7:
            guard let stream = anyWatched(by: index) else { return }
            made.append("\(member.id) unsubscribes from \(stream)")
            watched[index][stream] = nil
            try await member.unsubscribe(stream)
        default:
            guard let stream = anyWatched(by: index), let isPaused = watched[index][stream] else { return }
            made.append("\(member.id) \(isPaused ? "resumes" : "pauses") \(stream)")
            watched[index][stream] = !isPaused
            try await member.setPaused(!isPaused, stream)
        }
        try await Task.sleep(for: .milliseconds(.random(in: 0...100, using: &random)))
    }

    private mutating func anyWatched(by index: Int) -> Int? {
        watched[index].keys.sorted().randomElement(using: &random)
    }

    private mutating func forgetEnded() {
        for (index, member) in members.enumerated() {
            let known = member.knownVideos
            for video in known { streams[video.stream] = video.publisher }
            watched[index] = watched[index].filter { stream, _ in known.contains { $0.stream == stream } }
        }
    }

    /// Waits until all that is watched shows new frames.
    mutating func settle() async throws {
        let count = isPublishing.count { $0 } + 1
        for (index, member) in members.enumerated() {
            try await requireEventually("the videos of \(member.id)") {
                member.knownVideos.count == count - (isPublishing[index] ? 1 : 0)
            }
        }
        forgetEnded()
        for (index, member) in members.enumerated() {
            for (stream, isPaused) in watched[index] where !isPaused {
                let before = member.frames(of: stream)
                try await requireEventually("new frames of \(stream) at \(member.id) after \(made)") {
                    member.frames(of: stream) > before + 5
                }
            }
        }
    }
}

/// The numbers in the frames: the publisher, and when the frame was captured.
enum FrameCode {
    /// Frames of films repeat after so many ticks.
    static let period = 200
    static let ticksPerSecond = 10
    private static let publishers = 1...9
    /// A server repeats a keyframe that is up to a second old, and a busy machine needs time.
    private static let oldest = 40

    static var tick: Int { Int(EventLoop.now.nanoseconds / (1_000_000_000 / UInt64(ticksPerSecond))) }

    static func number(of publisher: Int, at tick: Int) -> UInt32 {
        UInt32(publisher) << 16 | UInt32(tick % period)
    }

    /// A sentence about a frame with this number that is not one of this publisher, or that is old. Nil without one, and for a
    /// frame of the browser, which has no number.
    static func problem(_ number: UInt32, of publisher: Int, at tick: Int) -> String? {
        let shown = Int(number >> 16)
        guard shown == publisher else {
            // Its camera may show something that reads as a number.
            return publisher == 0 && !publishers.contains(shown)
                ? nil : "a frame of \(shown) is shown as one of \(publisher)"
        }
        let age = ((tick - Int(number & 0xffff)) % period + period) % period
        // The clock of a frame and that of its viewer may lie on both sides of a tick.
        return age <= oldest || age >= period - 2 ? nil : "a frame of \(publisher) is \(age) ticks old"
    }
}
