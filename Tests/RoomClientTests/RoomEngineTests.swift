import Glibc
import PeerIO
import RTP
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import ClientCore
@testable import RoomClient

@Suite(.timeLimit(.minutes(1)))
struct RoomEngineTests {
    @Test func `the timeout of a connection includes the wait for its token`() async throws {
        var options = RoomOptions()
        options.connectDeadline = .milliseconds(1)
        let (events, teller) = AsyncStream<RoomEvent>.makeStream()
        let (gate, opener) = AsyncStream<Void>.makeStream()
        let address = try ServerAddress("ws://127.0.0.1:1")
        let engine = RoomEngine(options: options) { teller.yield($0) }
        engine.connect(to: try RoomName("room")) { (_) async throws(RoomError) in
            for await _ in gate {}
            return AccessToken(address: address, token: "late")
        }
        var iterator = events.makeAsyncIterator()
        guard case .ended(.disconnected, let error) = await iterator.next() else {
            Issue.record("the room did not end first")
            return
        }
        #expect(error?.code == .serverUnreachable)
        opener.finish()
    }

    @Test func `a room that is being left ends without an error, even if the server closes it first`() async throws {
        try await RoomStage.run { stage in
            let (events, teller) = AsyncStream<RoomEvent>.makeStream()
            let engine = RoomEngine { teller.yield($0) }
            engine.connect(to: try RoomName("room"), with: try await stage.token())
            let closing = Closing(reason: .kicked, error: RoomError(.tokenInvalid, "The access token was signed out."))
            for await event in events {
                if case .connected = event {
                    // The message arrives before the response to the request to leave.
                    engine.post { engine in
                        engine.leave()
                        engine.connection.handle(ServerMessage.closed(closing))
                    }
                }
                guard case .ended(let reason, let error) = event else { continue }
                #expect(reason == .disconnected)
                #expect(error == nil)
                break
            }
        }
    }

    @Test func `of two attempts to return, the later one may be the faster one, and its link is the one that counts`()
        async throws
    {
        try await RoomStage.run { stage in
            let (events, teller) = AsyncStream<RoomEvent>.makeStream()
            let (gate, opener) = AsyncStream<Void>.makeStream()
            let token = try await stage.token()
            let requests = Mutex(0)
            let engine = RoomEngine { teller.yield($0) }
            engine.connect(to: try RoomName("room")) { (_) async throws(RoomError) in
                let number = requests.withLock { requests in
                    requests += 1
                    return requests
                }
                // The first attempt to return.
                if number == 2 { for await _ in gate {} }
                return token
            }
            // Further addresses let it try at once.
            @Sendable func lose(_ addresses: Set<String>) {
                engine.post { engine in
                    engine.connection.lost(.disconnected, RoomError(.connectionLost, "The link was cut."))
                    engine.connection.addressesChanged(to: addresses)
                }
            }
            for await event in events {
                switch event {
                case .connected: lose(["192.0.2.1"])
                case .reconnecting(attempt: 1, _): lose(["192.0.2.1", "192.0.2.2"])
                case .reconnected:
                    #expect(await engine.pipes == 2)
                    opener.finish()
                default: continue
                }
                if case .reconnected = event { break }
            }
            try await requireEventually("the slower attempt") { await engine.pipes == 3 }
            let reply = await withCheckedContinuation { continuation in
                engine.send(SendMessage(targets: [], text: "hello", kind: "chat")) {
                    continuation.resume(returning: $0)
                }
            }
            #expect(throws: Never.self) { try reply.get() }
            engine.disconnect()
        }
    }

    /// Blocks the loop, fills it with work, and calls the function before the loop goes on.
    private static func whileOverloaded(_ body: () -> Void) {
        let gate = Mutex(())
        let isEntered = Atomic(false)
        gate.withLock { _ in
            RoomLoop.shared.execute {
                isEntered.store(true, ordering: .relaxed)
                gate.withLock { _ in }
            }
            while !isEntered.load(ordering: .relaxed) { sched_yield() }
            while RoomLoop.shared.execute({}) {}
            body()
        }
    }

    @Test func `an overloaded loop loses neither the beginning nor the end of a room, nor how loud it is`() async throws
    {
        let happened = Collected<String>()
        func engine(_ name: String) -> RoomEngine {
            RoomEngine {
                if case .ended(_, let error) = $0 { happened.append("\(name) \(error?.code.name ?? "left")") }
            }
        }
        let (joining, leaving) = (engine("joining"), engine("leaving"))
        let room = try RoomName("room")
        Self.whileOverloaded {
            joining.connect(to: room) { (_) async throws(RoomError) in throw RoomError(.serverUnreachable, "No.") }
            leaving.disconnect()
            for number in 0..<1000 {
                leaving.setMuted(number.isMultiple(of: 2))
                leaving.setVolume(Double(number), isMuted: false, of: 7)
            }
            leaving.setMuted(true)
            leaving.unpublish([1]) { result in
                guard case .failure(let error) = result else { return }
                leaving.afterEvents { happened.append("afterwards \(error.code.name)") }
            }
        }
        await eventually("all calls") { happened.all.count == 3 }
        let overload = "afterwards \(RoomEngine.overloaded.code.name)"
        #expect(
            Set(happened.all) == ["joining \(RoomError.Code.serverUnreachable.name)", "leaving left", overload])
        let sound = await withCheckedContinuation { continuation in
            leaving.post { continuation.resume(returning: ($0.sinks.room.isMuted, $0.sinks.room.volume(of: 7).factor)) }
        }
        #expect(sound == (true, 999))
    }

    @Test func `an engine follows the addresses of the machine until its room ends`() async throws {
        try await RoomStage.run { stage in
            let (events, teller) = AsyncStream<RoomEvent>.makeStream()
            let engine = RoomEngine { teller.yield($0) }
            engine.connect(to: try RoomName("room"), with: try await stage.token())
            func isWatching() async -> Bool {
                await withCheckedContinuation { continuation in
                    engine.post { continuation.resume(returning: $0.addresses != nil) }
                }
            }
            for await event in events {
                if case .connected = event {
                    #expect(await isWatching())
                    engine.disconnect()
                }
                if case .ended = event { break }
            }
            #expect(await !isWatching())
        }
    }

    @Test func `an engine that is released while it is connected leaves the room`() async throws {
        try await RoomStage.run { stage in
            let (events, teller) = AsyncStream<RoomEvent>.makeStream()
            let onlooker = RoomEngine { teller.yield($0) }
            onlooker.connect(to: try RoomName("room"), with: try await stage.token())
            var iterator = events.makeAsyncIterator()
            var comings: [String] = []
            func next() async {
                while let event = await iterator.next() {
                    switch event {
                    case .connected: comings.append("connected")
                    case .participantEntered: comings.append("entered")
                    case .participantLeft: comings.append("left")
                    default: continue
                    }
                    return
                }
            }
            await next()
            do {
                let passing = RoomEngine { _ in }
                passing.connect(to: try RoomName("room"), with: try await stage.token())
                await next()
                withExtendedLifetime(passing) {}
            }
            await next()
            #expect(comings == ["connected", "entered", "left"])
            onlooker.disconnect()
        }
    }
}
