import Foundation
import NIOCore
import NIOPosix
import RoomProtocol
import Testing
import TestSupport

@testable import ConnectLiveSDK
@testable import RoomClient

/// The numbers of errors by the call that fails.
@Suite(.timeLimit(.minutes(1))) struct ErrorNumberTests {
    private let scripted = ScriptedRoom()
    private let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    private func join() {
        let info = StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "")
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [info])])
    }

    private func error(_ result: Result<Void, any Error>) -> ConnectLiveError? {
        if case .failure(let error) = result { error as? ConnectLiveError } else { nil }
    }

    // MARK: - Subscribing

    @Test(arguments: [
        (RoomError.Code.alreadySubscribed, 1321), (.receiversExhausted, 1322), (.receiverUnavailable, 1326),
        (.noSuchStream, 1328), (.roomReleased, 1302), (.connectionLost, 1329), (.tooManyRequests, 1329),
        (.errorReplyInvalid, 1329), (.enterResponseInvalid, 1329),
    ])
    func `a failed subscription has the number of its cause, or else one for all`(
        cause: RoomError.Code, number: Int
    ) async {
        join()
        link.answer { _ in .failure(RoomError(cause, "It failed.")) }
        let failure = error(await room.subscribe(videoId: 7))
        #expect(failure?.code == number)
        if number == 1329 { #expect(failure?.errorDescription == "It failed. [\(cause.name)]") }
        room.subscribe(videoIds: [7])
        #expect(scripted.errors == [number])
    }

    @Test func `any failure to unsubscribe has one number`() async throws {
        join()
        #expect(error(await room.unsubscribe(videoId: 99))?.code == 1328)
        link.answer { call in
            if case .unsubscribe = call { .failure(RoomError(.notSubscribed, "It is not.")) } else { .success }
        }
        let failure = error(await room.unsubscribe(videoId: 7))
        #expect(failure == .error(1331, "It is not. [1327]"))
        room.unsubscribe(videoIds: [7])
        #expect(scripted.errors == [1331])
    }

    @Test func `without a connection nothing is subscribed, and a list of no videos is an error`() async {
        #expect(error(await room.subscribe(videoId: 99))?.code == 1325)
        #expect(error(await room.unsubscribe(videoId: 99))?.code == 1325)
        room.subscribe(videoIds: [])
        room.unsubscribe(videoIds: [])
        room.subscribe(videoIds: [1])
        #expect(scripted.errors == [1323, 1324, 1325] && link.calls.isEmpty)
    }

    // MARK: - Publishing

    @Test(arguments: [
        (RoomError(.publishRefused, "No."), 1441, "No."),
        (RoomError(.serverFull, "No."), 1441, "No. [server.full]"),
        (RoomError(.connectionLost, "No."), 1442, "No. [1312]"),
        (RoomError(.publishReplyDiffers, "No."), 1443, "No."), (RoomError(.answerUnusable, "No."), 1444, "No."),
        (RoomError(.offerRefused, "No."), 1431, "No."), (RoomError(.peerFailed, "No."), 1401, "No."),
        (RoomError(.publishReplyInvalid, "No."), 1472, "No."), (RoomError(.nothingToCapture, "No."), 1202, "No."),
    ])
    func `a failed publication has the number of its cause`(
        cause: RoomError, number: Int, message: String
    ) async throws {
        join()
        link.answer { _ in .failure(cause) }
        try room.publish(media)
        try await requireEventually("the error") { scripted.errors == [number] }
        guard case .error(_, let text, let isCritical) = scripted.listener.events.last else { return }
        #expect(text == message && !isCritical)
    }

    @Test(arguments: [(RoomError.Code.tooManyRequests, 1445), (.noSuchStream, 1445), (.connectionLost, 1446)])
    func `media that is not unpublished has a number for a refusal, and one for a failure`(
        cause: RoomError.Code, number: Int
    ) async throws {
        join()
        try room.publish(media)
        try await requireEventually("published") { scripted.isPublished(media) }
        link.answer { _ in .failure(RoomError(cause, "No.")) }
        room.unpublish(media)
        #expect(scripted.errors == [number])
    }

    @Test func `media without a source has nothing to capture`() async throws {
        var config = Config()
        (config.mediaOptions.hasVideo, config.mediaOptions.microphone) = (false, .none)
        let media = try #require(ConnectLive.createLocalMedia(config: config))
        let error = await #expect(throws: ConnectLiveError.self) { try await media.start() }
        #expect(error?.code == 1202)
    }

    @Test func `an object of the application is not published`() {
        let double = MediaDouble()
        #expect(throws: ConnectLiveError.error(1901, "")) {
            do {
                try room.publish(double)
            } catch let error as ConnectLiveError {
                throw ConnectLiveError.error(error.code, "")
            }
        }
    }

    // MARK: - Views

    @Test func `a reply about a view that cannot be read has a number of its own`() async throws {
        join()
        try await room.subscribe(videoId: 7).get()
        link.answer { _ in .failure(RoomError(.viewReplyInvalid, "It cannot be read.")) }
        let video = try #require(room.remoteParticipants["ann"]?.videos[7])
        await #expect(throws: ConnectLiveError.error(1473, "It cannot be read.")) {
            try await video.setPausedAsync(true)
        }
    }

    // MARK: - Small calls

    @Test func `a participant with a subscribed video says so`() async throws {
        join()
        let participant = try #require(room.remoteParticipants["ann"])
        #expect(!participant.isVideoSubscribed)
        try await room.subscribe(videoId: 7).get()
        #expect(participant.isVideoSubscribed)
        try await room.unsubscribe(videoId: 7).get()
        #expect(!participant.isVideoSubscribed)
    }

    @Test func `ICE is restarted in a connected room only`() {
        room.restartIce()
        join()
        room.restartIce()
        link.send(.ended(.destroyed, nil))
        room.restartIce()
        #expect(link.calls == [.connect("scripted"), .restartICE])
    }

    // MARK: - Equality

    @Test func `errors with the same code and message are equal, whatever their underlying values`() {
        let one = ConnectLiveError.provision(1902, "No.", HttpSessionError.httpStatusError(503, "busy"))
        #expect(one == .error(1902, "No.") && one != .error(1902, "Yes.") && one != .error(1903, "No."))
        #expect(one.code == 1902 && one.localizedDescription == "No.")
        #expect(HttpSessionError.requestError(one).errorDescription == "No.")
        #expect(ResponseErrorCode.unauthorized.rawValue == 11002)
    }
}

/// Local media of a type of the application, with the members of iOS.
private final class MediaDouble: LocalMedia {
    private let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))

    var video: any LocalVideo { media.video }
    var audio: any LocalAudio { media.audio }
    var position: CameraPosition {
        get { .front }
        set {}
    }
    var isMirror: Bool { false }
    var audioLevel: Int { 0 }
    func start() async throws {}
    func start(completion: @escaping ((any Error)?) -> Void) {}
    func stop() async {}
    func stop(completion: @escaping () -> Void) {}
    func switchCamera(position: CameraPosition, isMirror: Bool) async throws {}
    func switchCamera(position: CameraPosition, isMirror: Bool, completion: @escaping ((any Error)?) -> Void) {}
}

extension SDKTests {
    /// Sign-ins at servers that reply with something else.
    @Suite(.timeLimit(.minutes(1))) struct WrongServers {
        /// Replies to each request with this text, and closes.
        private func withServer(_ reply: String, _ body: (String) async throws -> Void) async throws {
            let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Replier(reply))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            do {
                try await body("http://127.0.0.1:\(server.localAddress?.port ?? 0)")
            } catch {
                Issue.record("\(error)")
            }
            try await server.close()
        }

        private static func response(_ status: String, _ body: String) -> String {
            "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
        }

        @Test(arguments: [
            (response("503 Busy", "later"), 1902), (response("200 OK", ""), 1903),
            ("SSH-2.0-OpenSSH_9.2\r\n\r\n", 1903),
            ("", 1904), (response("200 OK", "{}"), 1104),
            (response("401 No", #"{"code":"-11002","message":"No."}"#), -11002),
        ])
        func `a reply that is none of a room server has a number for what is wrong`(
            reply: String, code: Int
        ) async throws {
            try await withServer(reply) { endpoint in
                let result = await ConnectLive.signIn(serviceId: "test", serviceSecret: "x", endpoint: endpoint)
                #expect(result.0 == code, "\(result.1)")
            }
        }

        @Test func `the underlying value of an error of an exchange is what was wrong with it`() async throws {
            func failure(_ reply: String) async throws -> Any? {
                var value: Any?
                try await withServer(reply) { endpoint in
                    do throws(RoomError) {
                        _ = try await AccessToken.signIn(
                            at: ServerLocation(
                                address: try ServerAddress(endpoint), serviceId: "test", serviceSecret: "x"))
                    } catch {
                        guard case .provision(_, _, let found) = ConnectLiveError(error.failing(.renewal)) else {
                            return
                        }
                        value = found
                    }
                }
                return value
            }
            guard
                case .httpStatusError(503, "later") = try await failure(Self.response("503 Busy", "later"))
                    as? HttpSessionError
            else { throw NotInTime(what: "no status") }
            guard case .empty = try await failure(Self.response("200 OK", "")) as? HttpSessionError else {
                throw NotInTime(what: "not empty")
            }
            guard case .unknown = try await failure("SSH-2.0-OpenSSH_9.2\r\n\r\n") as? HttpSessionError else {
                throw NotInTime(what: "HTTP")
            }
            guard case .requestError(let error) = try await failure("") as? HttpSessionError else {
                throw NotInTime(what: "a reply")
            }
            #expect((error as? ConnectLiveError)?.code == 1904)
            let refusal = try await failure(Self.response("401 No", #"{"code":"-11002","message":"No."}"#))
            #expect(refusal as? ResponseErrorCode == .unauthorized)
        }
    }
}

private final class Replier: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let reply: String

    init(_ reply: String) { self.reply = reply }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = context.channel
        channel.writeAndFlush(channel.allocator.buffer(string: reply)).whenComplete { _ in channel.close(promise: nil) }
    }
}
