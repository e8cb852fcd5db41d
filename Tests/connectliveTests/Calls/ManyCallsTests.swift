import CMalloc
import ConnectLiveSDK
import Foundation
import Glibc
import MediaGraph
import Synchronization
import TestSupport
import Testing

/// Joins, publications and their ends, one after the other, with a server in a process of its own.
@Suite(.serialized) struct ManyCallsTests {
    /// The resources of a process.
    private struct Use: CustomStringConvertible {
        var kilobytes: Int
        var threads: Int
        var descriptors: Int

        /// The memory of this process is what malloc has given out. That of another one is what it alone has written to, of which
        /// malloc keeps a part that differs each time. Unchanged pages of a program change owner with each process that runs it.
        init(of process: Int32) throws {
            let folder = "/proc/\(process)"
            threads = try FileManager.default.contentsOfDirectory(atPath: folder + "/task").count
            descriptors = try FileManager.default.contentsOfDirectory(atPath: folder + "/fd").count
            guard process != getpid() else {
                // The memory that threads keep for their next calls counts.
                malloc_trim(0)
                let heap = mallinfo2()
                kilobytes = (heap.uordblks + heap.hblkhd) / 1024
                return
            }
            let memory = try String(contentsOfFile: folder + "/smaps_rollup", encoding: .utf8)
            kilobytes = memory.split(separator: "\n").reduce(0) { sum, line in
                line.hasPrefix("Private_Dirty") ? sum + (Int(line.filter(\.isNumber)) ?? 0) : sum
            }
        }

        var description: String { "\(kilobytes) KiB, \(threads) threads, \(descriptors) descriptors" }
    }

    /// The uses of one process after each part of the rounds.
    private struct Series {
        let name: String
        let process: Int32
        let roundsInPart: Int
        var uses: [Use] = []

        /// Threads and descriptors of what has ended are closed soon after.
        mutating func measure() async throws {
            let first = uses.first
            var use = try Use(of: process)
            _ = try await eventually(within: 10) {
                use = try Use(of: process)
                guard let first else { return true }
                return use.threads <= first.threads && use.descriptors <= first.descriptors
            }
            uses.append(use)
        }

        /// In KiB a round. In the first hundreds of rounds, the pools of threads still fill.
        private static let mostGrowth = Soak.isOn ? 2.0 : 25

        func check() {
            guard let first = uses.first, uses.count >= 4 else { return }
            #expect(uses.allSatisfy { $0.threads <= first.threads }, "\(name): \(uses)")
            #expect(uses.allSatisfy { $0.descriptors <= first.descriptors }, "\(name): \(uses)")
            #expect(growth <= Self.mostGrowth, "\(name): \(growth) KiB a round, \(uses)")
        }

        /// The slope of the memory in the second half, because pools fill in the first one: the line of the least squares, in KiB a
        /// round.
        var growth: Double {
            let late = uses.suffix((uses.count + 1) / 2).enumerated().map { (Double($0), Double($1.kilobytes)) }
            let middle = Double(late.count - 1) / 2
            let mean = late.reduce(0) { $0 + $1.1 } / Double(late.count)
            let rise = late.reduce(0) { $0 + ($1.0 - middle) * ($1.1 - mean) }
            let run = late.reduce(0) { $0 + ($1.0 - middle) * ($1.0 - middle) }
            return rise / run / Double(roundsInPart)
        }
    }

    @Test func `participants that join, publish, unpublish and leave again and again cost nothing that stays`()
        async throws
    {
        let (rounds, part) = (Soak.rounds(50, soak: 1000), Soak.rounds(5, soak: 50))
        let key = ["CONNECTLIVE_SERVICE_ID": "many", "CONNECTLIVE_SERVICE_SECRET": "a secret of many calls"]
        let server = try TestServer(environment: key)
        let queue = DispatchQueue(label: "callbacks")
        ConnectLive.callbackQueue = queue
        defer { ConnectLive.callbackQueue = nil }
        let (code, message) = await ConnectLive.signIn(
            serviceId: "many", serviceSecret: "a secret of many calls", endpoint: server.url)
        try #require(code == 0, "\(message)")
        let viewer = Caller()
        try await viewer.join()
        var series = [
            Series(name: "server", process: server.tool.process.processIdentifier, roundsInPart: part),
            Series(name: "clients", process: getpid(), roundsInPart: part),
        ]
        // The first rounds fill pools.
        for _ in 0..<part { try await round(seenBy: viewer) }
        for number in 1...rounds {
            try await round(seenBy: viewer)
            if number.isMultiple(of: part) {
                for index in series.indices { try await series[index].measure() }
            }
        }
        for each in series {
            each.check()
            print("\(each.name) after each \(part) of \(rounds) rounds: \(each.uses), \(each.growth) KiB a round")
        }
        try await viewer.leave()
        ConnectLive.signOut()
    }

    /// Another participant joins, publishes, is seen, unpublishes and leaves.
    private func round(seenBy viewer: Caller) async throws {
        let publisher = Caller()
        try await publisher.join()
        var config = Caller.config
        config.mediaOptions.usesTestPattern = true
        (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (160, 90)
        config.mediaOptions.videoFPS = 15
        let media = try #require(ConnectLive.createLocalMedia(config: config))
        try publisher.room.publish(media)
        let video = try await viewer.video()
        let frames = Mutex(0)
        let view = FrameView()
        view.onFrame = { _ in frames.withLock { $0 += 1 } }
        video.attach(view)
        try await viewer.room.subscribe(videoId: video.id).get()
        try await requireEventually("a frame") { frames.withLock { $0 } > 0 }
        video.detach(view)
        publisher.room.unpublish(media)
        try await requireEventually("the end of the video") { viewer.videos.isEmpty }
        try await publisher.leave()
        await media.stop()
        try await requireEventually("the end of the participant") { viewer.room.remoteParticipants.isEmpty }
    }
}

/// A participant that only needs to know what there is.
final class Caller: RoomDelegate, Sendable {
    static var config: Config {
        var config = Config()
        config.playsRemoteAudio = false
        return config
    }

    private let made = Mutex<(any Room)?>(nil)
    private let errors = Mutex<[String]>([])
    private let hasLeft = Mutex(false)

    init() {
        let room = ConnectLive.createRoom(config: Self.config, delegate: self)
        made.withLock { $0 = room }
    }

    var room: any Room {
        guard let room = made.withLock({ $0 }) else { preconditionFailure("a caller has a room") }
        return room
    }

    var videos: [any RemoteVideo] { room.remoteParticipants.values.flatMap(\.videos.values) }

    func join() async throws {
        room.connect(roomId: "many")
        try await requireEventually("the room, \(errors.withLock { $0 })") { room.isConnected }
    }

    func leave() async throws {
        room.disconnect()
        try await requireEventually("the end of the room") { hasLeft.withLock { $0 } }
        #expect(errors.withLock { $0 }.isEmpty)
    }

    func video() async throws -> any RemoteVideo {
        try await requireEventually("a video") { !videos.isEmpty }
        return try #require(videos.first)
    }

    func onConnected(participantIds: [String]) {}
    func onDisconnected(reason: DisconnectReason) { hasLeft.withLock { $0 = true } }
    func onError(code: Int, message: String, isCritical: Bool) { errors.withLock { $0.append(message) } }
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}
