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
    /// One application and two clients that send packets. With the browser there are as many as can be heard at once.
    private static let speakers = [1, 3, 4]

    /// The codes in all frames prove that nobody is shown an old frame, or one of another video. 200 calls in `make soak`.
    @Test(arguments: [UInt64(1)])
    func `everyone sees whom it watches and hears who speaks, and no stale or crossed frames, through random calls`(
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
        let films = try FilmShelf(of: Self.packetClients, from: Self.applications + 1, speakers: Self.speakers)
        let problems = Collected<String>()
        var members: [any RoomMember] = []
        for id in 1...Self.applications { members.append(ApplicationMember(id, films, problems)) }
        for id in Self.applications + 1...Self.applications + Self.packetClients {
            members.append(try PacketMember(id, films, problems, server: server.url, key))
        }
        for member in members { try await member.join() }
        for member in members { try await member.publish() }
        for member in members where Self.speakers.contains(member.id) { try await member.speak() }
        let browser = try BrowserMember(
            page: "\(server.page)?room=whole&join=1", seeing: members.count, hearing: Self.speakers.count)
        // A call may end a video that it has not seen yet.
        try browser.waitUntilSeeing()
        var calls = RandomMemberCalls(members, seed: seed)
        while calls.made.count < Soak.rounds(20, soak: 200) { try await calls.makeOne() }
        try await calls.settle()
        try await expectHearing(members)
        let seen = try browser.finish(seeing: calls.videos)
        for problem in problems.all + browser.problems(in: seen, allKnown: calls.streams) {
            Issue.record("seed \(seed): \(problem). The calls: \(calls.made.joined(separator: ", "))")
        }
        #expect(Set(seen.map(\.stream)).count >= members.count, "the browser saw \(Set(seen.map(\.stream)))")
        for member in members {
            try await member.unpublish()
            try await member.leave()
        }
        ConnectLive.signOut()
    }

    /// Each member hears all others who speak.
    private func expectHearing(_ members: [any RoomMember]) async throws {
        for member in members {
            let others = Self.speakers.count + 1 - (Self.speakers.contains(member.id) ? 1 : 0)
            let before = await member.heard()
            try await requireEventually("the audio of \(others) at \(member.id)") {
                await member.heard().count { $1 > before[$0] ?? 0 } == others
            }
        }
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
    /// Caps the quality of a watched video. Does nothing if the member's library refuses that for a video of one layer.
    func setProfile(_ profile: StreamView.Profile, _ stream: Int) async throws
    /// Publishes audio until the member leaves. Returns when others can know it.
    func speak() async throws
    /// How much audio of each participant was heard so far.
    func heard() async -> [String: Double]
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

    /// How many videos of members there are.
    var videos: Int { isPublishing.count { $0 } }

    init(_ members: [any RoomMember], seed: UInt64) {
        self.members = members
        random = Seeded(seed)
        watched = members.map { _ in [:] }
        isPublishing = members.map { _ in true }
    }

    /// Makes a call, if the member that is drawn can make the one that is drawn. After every other one, the media goes on before the next.
    mutating func makeOne() async throws {
        forgetEnded()
        let index = Int.random(in: members.indices, using: &random)
        let member = members[index]
        let shown: Int?
        switch Int.random(in: 0..<11, using: &random) {
        case 0: shown = try await togglePublishing(index)
        case 1...5: shown = try await subscribe(index)
        case 6, 7:
            guard let stream = anyWatched(by: index) else { return }
            made.append("\(member.id) unsubscribes from \(stream)")
            watched[index][stream] = nil
            try await member.unsubscribe(stream)
            shown = anyWatched(by: index)
        case 8:
            // Of all, only the browser sends layers.
            guard let stream = watched[index].keys.first(where: { streams[$0] == 0 }) else { return }
            let profile = [StreamView.Profile.low, .mid, .high].randomElement(using: &random) ?? .low
            made.append("\(member.id) wants \(stream) as \(profile)")
            try await member.setProfile(profile, stream)
            shown = stream
        default:
            guard let stream = anyWatched(by: index), let isPaused = watched[index][stream] else { return }
            made.append("\(member.id) \(isPaused ? "resumes" : "pauses") \(stream)")
            watched[index][stream] = !isPaused
            try await member.setPaused(!isPaused, stream)
            shown = stream
        }
        if Bool.random(using: &random), let shown { try await requireFrames(1, of: shown, at: index) }
    }

    /// Returns when all members know it.
    private mutating func togglePublishing(_ index: Int) async throws -> Int? {
        let member = members[index]
        made.append("\(member.id) \(isPublishing[index] ? "unpublishes" : "publishes")")
        try await isPublishing[index] ? member.unpublish() : member.publish()
        isPublishing[index].toggle()
        try await requireKnownVideos()
        forgetEnded()
        return anyWatched(by: index)
    }

    /// Returns the stream. Nil without one that is free.
    private mutating func subscribe(_ index: Int) async throws -> Int? {
        let member = members[index]
        let free = member.knownVideos.filter { watched[index][$0.stream] == nil }
        guard let video = free.randomElement(using: &random), watched[index].count < 6 else { return nil }
        made.append("\(member.id) subscribes to \(video.stream) of \(video.publisher)")
        try await member.subscribe(video.stream, of: video.publisher)
        watched[index][video.stream] = false
        return video.stream
    }

    /// Waits for further frames of a watched stream, unless it is paused.
    private func requireFrames(_ count: Int, of stream: Int, at index: Int) async throws {
        guard watched[index][stream] == false else { return }
        let member = members[index]
        let before = member.frames(of: stream)
        try await requireEventually("new frames of \(stream) at \(member.id) after \(made)") {
            member.frames(of: stream) >= before + count
        }
    }

    private func requireKnownVideos() async throws {
        for (index, member) in members.enumerated() {
            // The browser's is one more.
            let count = videos + 1 - (isPublishing[index] ? 1 : 0)
            try await requireEventually("the \(count) videos of \(member.id)") { member.knownVideos.count == count }
        }
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
        try await requireKnownVideos()
        forgetEnded()
        for (index, streams) in watched.enumerated() {
            for stream in streams.keys { try await requireFrames(5, of: stream, at: index) }
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

    static let tickLength = UInt64(1_000_000_000 / ticksPerSecond)

    static var tick: Int { Int(EventLoop.now.nanoseconds / tickLength) }

    /// The beginning of the next tick.
    static var nextTick: MonotonicTime { MonotonicTime(nanoseconds: UInt64(tick + 1) * tickLength) }

    /// The tick comes twice: one in 256 spoiled frames passes the check of the bar code.
    static func number(of publisher: Int, at tick: Int) -> UInt32 {
        UInt32(publisher) << 16 | UInt32(0xff - tick % period) << 8 | UInt32(tick % period)
    }

    /// Nil for another number.
    static func read(_ number: UInt32) -> (publisher: Int, tick: Int)? {
        let (tick, other) = (Int(number & 0xff), Int(number >> 8 & 0xff))
        return tick + other == 0xff ? (Int(number >> 16), tick) : nil
    }

    /// A sentence about a frame with this number that is not one of this publisher, or that is old. Nil without one, for another
    /// number, and for a frame of the browser, which has none.
    static func problem(_ number: UInt32, of publisher: Int, at tick: Int) -> String? {
        guard let (shown, captured) = read(number) else { return nil }
        guard shown == publisher else {
            // Its camera may show something that reads as a number.
            return publisher == 0 && !publishers.contains(shown)
                ? nil : "a frame of \(shown) is shown as one of \(publisher)"
        }
        let age = ((tick - captured) % period + period) % period
        // The clock of a frame and that of its viewer may lie on both sides of a tick.
        return age <= oldest || age >= period - 2 ? nil : "a frame of \(publisher) is \(age) ticks old"
    }
}
