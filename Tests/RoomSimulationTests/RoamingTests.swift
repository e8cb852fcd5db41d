import PeerLoop
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore
@testable import RoomSimulation

/// Connections that are lost and come back.
struct RoamingTests {
    /// Ada publishes, Grace watches her, and Lin sees who comes and goes.
    private final class Call {
        let simulation: Simulation
        let ada: SimulatedClient
        let grace: SimulatedClient
        let lin: SimulatedClient
        private(set) var video = 0

        init(seed: UInt64, link: Link = .wifi, loops: Int = 1, returnTimeout: TimeInterval = .seconds(120)) throws {
            simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
            ada = simulation.client("ada", link: link)
            grace = simulation.client("grace", link: link)
            lin = simulation.client("lin")
            ada.returnTimeout = returnTimeout
            simulation.task { [lin, ada, grace] in
                try await lin.join("kitchen")
                try await ada.join("kitchen")
                try await ada.publish()
                try await grace.join("kitchen")
                try await grace.subscribe(to: grace.streams[0].id)
            }
            try simulation.run(for: .seconds(5))
            video = try #require(grace.watched.first)
        }

        var shown: Int { grace.framesShown(of: video) }
        var process: ServerProcess? { simulation.world.server.process }
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `a publisher learns that its media does not reach the room, and for how long`(seed: UInt64) throws {
        let call = try Call(seed: seed, link: .wired)
        call.ada.cut()
        try call.simulation.run(for: .seconds(12))
        #expect(call.ada.interruptions == ["up interrupted"])
        #expect(call.grace.interruptions.isEmpty && call.lin.interruptions.isEmpty)
        try call.simulation.run(for: .seconds(8))
        call.ada.reconnect()
        try call.simulation.run(for: .seconds(20))
        let lines = call.ada.interruptions
        #expect(lines.count == 2 && lines.last?.hasPrefix("restored after 2") == true, "\(lines)")
        #expect(call.grace.interruptions.isEmpty && call.lin.interruptions.isEmpty)
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `while media alone is cut, the participant stays, and media returns by itself afterwards`(seed: UInt64) throws
    {
        let call = try Call(seed: seed, link: .wired)
        let presence = call.lin.presence
        for client in [call.ada, call.grace] { client.cutMedia() }
        try call.simulation.run(for: .seconds(100))
        for client in [call.ada, call.grace] {
            #expect(client.isConnected && !client.isReturning && client.returns == (0, 0))
            client.reconnect()
        }
        let shown = call.shown
        try call.simulation.run(for: .seconds(15))
        #expect(call.shown > shown + 75)
        #expect(call.lin.presence == presence)
    }

    @Test func `a publisher that ends its camera while media is cut learns when the path is back, and stays`() throws {
        let call = try Call(seed: 1, link: .wired)
        call.ada.cutMedia()
        try call.simulation.run(for: .seconds(4))
        call.ada.sources.first?.end()
        call.ada.reconnect()
        try call.simulation.run(for: .seconds(150))
        let lines = call.ada.interruptions
        #expect(call.ada.isConnected && lines.count == 2 && lines.last?.hasPrefix("restored") == true, "\(lines)")
    }

    @Test func `a viewer's interruption lasts until its path is back, although the publisher is lost meanwhile`() throws
    {
        let call = try Call(seed: 1, link: .wired)
        call.grace.cutMedia()
        try call.simulation.run(for: .seconds(4))
        call.ada.cutMedia()
        try call.simulation.run(for: .seconds(20))
        #expect(call.grace.interruptions == ["down interrupted"])
        call.grace.reconnect()
        try call.simulation.run(for: .seconds(20))
        #expect(call.grace.interruptions.count == 2, "\(call.grace.interruptions)")
    }

    @Test func `a viewer's interruption lasts until its path is back, although the publisher leaves meanwhile`() throws
    {
        let call = try Call(seed: 1, link: .wired)
        call.grace.cutMedia()
        try call.simulation.run(for: .seconds(4))
        call.simulation.task { [ada = call.ada] in try await ada.leave() }
        try call.simulation.run(for: .seconds(20))
        #expect(call.grace.interruptions == ["down interrupted"])
        call.grace.reconnect()
        try call.simulation.run(for: .seconds(20))
        #expect(call.grace.isConnected && call.grace.interruptions.count == 2, "\(call.grace.interruptions)")
    }

    @Test func `a viewer whose reports do not reach the server looks for another way, although media arrives`() throws {
        let call = try Call(seed: 1)
        try call.simulation.run(for: .seconds(40))
        #expect(call.grace.connection?.down?.revision == 1)
        call.grace.up.isCut = true
        try call.simulation.run(for: .seconds(10))
        #expect(try #require(call.grace.connection?.down?.revision) > 1)
    }

    @Test func `a client without media gives up after the time of its options`() throws {
        let simulation = Simulation(seed: 3)
        defer { simulation.end() }
        let ada = simulation.client("ada", link: .wired)
        ada.returnTimeout = .seconds(20)
        simulation.task {
            try await ada.join("kitchen")
            try await ada.publish()
        }
        try simulation.run(for: .seconds(5))
        ada.cutMedia()
        try simulation.run(for: .seconds(19))
        #expect(ada.isConnected)
        try simulation.run(for: .seconds(3))
        #expect(!ada.isConnected)
        let sentence = try #require(ada.endError)
        #expect(sentence.hasPrefix("No media has reached the server") && sentence.contains("for 20 s"), "\(sentence)")
        #expect(sentence.contains("ICE restarts found no other way."), "\(sentence)")
    }

    @Test func `a client that gives up before its server counts as lost blames no firewall`() throws {
        let call = try Call(seed: 3, link: .wired, returnTimeout: .seconds(5))
        call.ada.cut()
        try call.simulation.run(for: .seconds(7))
        let sentence = try #require(call.ada.endError)
        #expect(sentence.contains("for 5 s, and the server does not answer either."), "\(sentence)")
    }

    @Test func `a publisher that watches nothing restarts no ICE, although the server has nothing to report to it`()
        throws
    {
        let call = try Call(seed: 1)
        #expect(call.ada.connection?.down?.revision == 1)
        try call.simulation.run(for: .seconds(40))
        #expect(call.ada.connection?.down?.revision == 1)
        // Its way is kept for what it watches later.
        call.simulation.task { [ada = call.ada, grace = call.grace] in
            try await grace.publish()
            try await ada.subscribe(to: ada.streams[0].id)
        }
        try call.simulation.run(for: .seconds(5))
        let watched = try #require(call.ada.watched.first)
        #expect(call.ada.framesShown(of: watched) > 50)
        #expect(call.ada.connection?.down?.revision == 1)
    }

    @Test(arguments: [false, true])
    func `a client that was alone for long waits for its first video, also if its publisher sends nothing`(
        isCameraOff: Bool
    ) throws {
        let simulation = Simulation(seed: 1)
        defer { simulation.end() }
        let (ada, grace) = (simulation.client("ada", link: .wired), simulation.client("grace", link: .wired))
        simulation.task { try await ada.join("kitchen") }
        try simulation.run(for: .seconds(130))
        simulation.task {
            try await grace.join("kitchen")
            // Its path takes long.
            grace.cutMedia()
            let video = try await grace.publish()
            if isCameraOff { grace.sources.first?.end() }
            try await ada.wait { $0.streams.map(\.id) == [video] }
            try await ada.subscribe(to: video)
            try await simulation.sleep(for: .seconds(5))
            grace.reconnect()
        }
        try simulation.run(for: .seconds(isCameraOff ? 140 : 20))
        #expect(ada.isConnected && ada.interruptions.isEmpty, "\(ada.interruptions)")
        #expect(ada.connection?.down?.revision == 1)
        let video = try #require(ada.watched.first)
        #expect(isCameraOff || ada.framesShown(of: video) > 100)
    }

    @Test func `a client that only hears audio restarts ICE when none arrives, and one in an empty room does not`()
        throws
    {
        let simulation = Simulation(seed: 1)
        defer { simulation.end() }
        let (ada, grace, lin) = (simulation.client("ada"), simulation.client("grace"), simulation.client("lin"))
        simulation.task {
            try await ada.join("kitchen")
            try await ada.publishAudio()
            try await grace.join("kitchen")
            try await lin.join("garden")
        }
        try simulation.run(for: .seconds(5))
        #expect([grace, lin].map { $0.connection?.down?.revision } == [1, 1])
        for client in [grace, lin] { client.cutMedia() }
        try simulation.run(for: .seconds(15))
        #expect(try #require(grace.connection?.down?.revision) > 1)
        #expect(lin.connection?.down?.revision == 1)
    }

    @Test(arguments: 1...UInt64(Soak.rounds(2, soak: 8)))
    func `a cut of 3, 10 or 20 s is seen by nobody else, and media goes on as it was`(seed: UInt64) throws {
        for seconds in [3, 10, 20] as [Int64] {
            for isPublisher in [true, false] {
                let call = try Call(seed: seed, loops: seed % 2 == 0 ? 2 : 1)
                let client = isPublisher ? call.ada : call.grace
                let (id, presence) = (client.participant, call.lin.presence)
                client.cut()
                try call.simulation.run(for: .seconds(seconds))
                client.reconnect()
                try call.simulation.run(for: .seconds(15))
                #expect(client.isConnected && !client.isReturning)
                #expect(client.participant == id)
                #expect(client.returns.rejoined == 0)
                #expect(call.lin.presence == presence)
                let shown = call.shown
                let report = try call.simulation.run(for: .seconds(5))
                // The same session with the same SSRCs: the first viewer still shows frames, and there is no other.
                #expect(report.viewers.count == 1)
                #expect(call.shown > shown + 75)
            }
        }
    }

    @Test(arguments: UInt64(1)...6)
    func `after 40 s, others see one leave and one enter, and the client publishes and watches again`(
        seed: UInt64
    ) throws {
        for isPublisher in [true, false] {
            let call = try Call(seed: seed)
            let client = isPublisher ? call.ada : call.grace
            let (id, presence) = (client.participant, call.lin.presence)
            client.cut()
            try call.simulation.run(for: .seconds(40))
            #expect(call.lin.presence == (presence.entered, presence.left + 1))
            client.reconnect()
            try call.simulation.run(for: .seconds(15))
            #expect(client.isConnected && !client.isReturning)
            #expect(client.participant != id)
            #expect(client.returns == (0, 1))
            #expect(call.lin.presence == (presence.entered + 1, presence.left + 1))
            #expect(call.lin.streams.count == 1)
            guard isPublisher else {
                let shown = call.shown
                try call.simulation.run(for: .seconds(5))
                #expect(call.shown > shown + 75)
                continue
            }
            // Grace's application sees another video, as of another participant.
            let again = try #require(call.grace.streams.first)
            call.simulation.task { [grace = call.grace] in try await grace.subscribe(to: again.id) }
            try call.simulation.run(for: .seconds(5))
            #expect(call.grace.framesShown(of: again.id) > 75)
        }
    }

    @Test(arguments: UInt64(1)...6)
    func `clients of a server that restarts join, publish and watch again by themselves`(seed: UInt64) throws {
        let call = try Call(seed: seed)
        call.simulation.task { [grace = call.grace, simulation = call.simulation] in
            // The application watches each video that comes.
            while true {
                try await grace.wait { client in
                    client.streams.contains { !client.watched.contains($0.id) }
                }
                for stream in grace.streams where !grace.watched.contains(stream.id) {
                    try? await grace.subscribe(to: stream.id)
                }
                try await simulation.sleep(for: .milliseconds(100))
            }
        }
        call.simulation.killServer()
        try call.simulation.run(for: .seconds(4))
        #expect(call.ada.isReturning && call.grace.isReturning)
        call.simulation.startServer()
        try call.simulation.run(for: .seconds(20))
        for client in [call.ada, call.grace, call.lin] {
            #expect(client.returns == (0, 1))
            #expect(client.isConnected)
        }
        let video = try #require(call.grace.streams.first?.id)
        #expect(call.grace.watched == [video])
        let shown = call.grace.framesShown(of: video)
        try call.simulation.run(for: .seconds(5))
        #expect(call.grace.framesShown(of: video) > shown + 75)
        #expect(call.simulation.world.server.participants == 3)
    }

    @Test(arguments: UInt64(1)...6, [3, 5, 9, 20] as [Int64])
    func `clients are back within three seconds of a server's return`(seed: UInt64, seconds: Int64) throws {
        let call = try Call(seed: seed, link: .wired)
        call.simulation.killServer()
        try call.simulation.run(for: .seconds(seconds))
        call.simulation.startServer()
        try call.simulation.run(for: .seconds(3))
        #expect(!call.ada.isReturning && !call.grace.isReturning && !call.lin.isReturning)
    }

    @Test func `a client that gives up tells after how long`() throws {
        let simulation = Simulation(seed: 4)
        let ada = simulation.client("ada")
        ada.returnTimeout = .seconds(10)
        simulation.task { try await ada.join("kitchen") }
        try simulation.run(for: .seconds(3))
        simulation.killServer()
        try simulation.run(for: .seconds(15))
        #expect(ada.endError?.hasSuffix(" Gave up after 10 s.") == true, "\(ada.endError ?? "")")
    }

    /// Calls at different moments: while the server is lost, during `join`, and while the tracks are published again.
    @Test(arguments: UInt64(1)...30)
    func `a video that is unpublished while the client joins again has ended`(seed: UInt64) throws {
        let call = try Call(seed: seed, link: .wifi)
        let results = Collected<String>()
        call.simulation.killServer()
        try call.simulation.run(for: .seconds(1))
        call.simulation.startServer()
        let stream = try #require(call.ada.sources.first?.stream)
        call.simulation.task { [ada = call.ada, simulation = call.simulation] in
            try await simulation.sleep(for: .milliseconds(Int64(seed) * 50))
            // The id may have changed by then.
            let present = ada.sources.first?.stream ?? stream
            do {
                try await ada.unpublish(present)
                results.append("ended")
            } catch {
                results.append("\(error)")
            }
        }
        try call.simulation.run(for: .seconds(15))
        #expect(results.all == ["ended"])
        #expect(call.ada.isConnected && !call.ada.isReturning)
        #expect(!call.lin.streams.contains { $0.participant == call.ada.participant })
    }

    @Test(arguments: UInt64(1)...30)
    func `a video that is unsubscribed while the client joins again is not watched any longer`(seed: UInt64) throws {
        let call = try Call(seed: seed, link: .wifi)
        let results = Collected<String>()
        // The server goes on, and Grace alone joins again.
        call.grace.cut()
        try call.simulation.run(for: .seconds(45))
        call.grace.reconnect()
        call.simulation.task { [grace = call.grace, simulation = call.simulation, video = call.video] in
            try await simulation.sleep(for: .milliseconds(Int64(seed) * 70))
            do {
                try await grace.unsubscribe(from: video)
                results.append("ended")
            } catch {
                results.append("\(error)")
            }
        }
        try call.simulation.run(for: .seconds(15))
        #expect(results.all == ["ended"])
        let shown = call.shown
        try call.simulation.run(for: .seconds(2))
        #expect(call.shown == shown)
    }

    @Test func `clients of a server that restarts do not come back all at once`() throws {
        let simulation = Simulation(seed: 9)
        let clients = (0..<60).map { simulation.client("client \($0)") }
        for client in clients { simulation.task { try await client.join("kitchen") } }
        try simulation.run(for: .seconds(3))
        simulation.killServer()
        try simulation.run(for: .seconds(6))
        simulation.startServer()
        var back: [Int] = []
        for _ in 0..<120 {
            try simulation.run(for: .milliseconds(100))
            back.append(clients.count { $0.returns.rejoined == 1 })
        }
        #expect(back.last == 60)
        let steps = zip(back, back.dropFirst()).map { $1 - $0 }
        #expect(steps.max() ?? 60 < 20)
    }

    @Test(arguments: UInt64(1)...12)
    func `requests around a break are executed once each, and in order`(seed: UInt64) throws {
        let call = try Call(seed: seed, link: seed % 3 == 0 ? .cellular : .wifi)
        var random = RandomSource(seed: seed)
        for _ in 0..<8 {
            let pause = Int64.random(in: 0...2500, using: &random)
            let serverLearns = Bool.random(using: &random)
            call.simulation.after(.milliseconds(Int64.random(in: 0...18_000, using: &random))) {
                call.ada.cutSignalling()
                call.simulation.after(.milliseconds(pause)) {
                    call.ada.dropSignalling(serverLearns: serverLearns)
                    call.ada.reconnect()
                }
            }
        }
        let seeds = (random.next(), random.next())
        let published = Collected<Int>()
        call.simulation.task { [ada = call.ada, simulation = call.simulation] in
            var random = RandomSource(seed: seeds.0)
            for round in 0..<30 {
                let video = try await ada.publish()
                published.append(video)
                ada.setWaiting("round \(round)", video)
                try await simulation.sleep(for: .milliseconds(Int64.random(in: 0...300, using: &random)))
                if round % 4 != 3 { try await ada.unpublish(video) }
            }
        }
        call.simulation.task { [grace = call.grace, simulation = call.simulation, video = call.video] in
            var random = RandomSource(seed: seeds.1)
            while simulation.time < .seconds(40) {
                try await simulation.sleep(for: .milliseconds(Int64.random(in: 50...400, using: &random)))
                try await grace.unsubscribe(from: video)
                try await grace.subscribe(to: video)
            }
        }
        let (id, presence) = (call.ada.participant, call.lin.presence)
        try call.simulation.run(for: .seconds(60))
        #expect(call.ada.returns.resumed >= 3)
        #expect(call.ada.returns.rejoined == 0 && call.ada.participant == id)
        #expect(call.lin.presence == presence)
        #expect(published.count == 30)
        // The others know the first video, and every fourth of the others with its last state, as Ada's application left them.
        #expect(call.lin.streams.count == 8)
        #expect(call.lin.streams.compactMap(\.waiting) == [3, 7, 11, 15, 19, 23, 27].map { "round \($0)" })
        #expect(call.grace.watched == [call.video])
    }

    @Test func `signalling that breaks alone is resumed while media flows`() throws {
        for serverLearns in [true, false] {
            let call = try Call(seed: 21)
            for client in [call.ada, call.grace] { client.dropSignalling(serverLearns: serverLearns) }
            let (shown, presence) = (call.shown, call.lin.presence)
            try call.simulation.run(for: .seconds(2))
            #expect(call.shown > shown + 25)
            #expect(call.ada.returns == (1, 0) && call.grace.returns == (1, 0))
            #expect(call.lin.presence == presence)
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `one dead direction is survived like a cut`(isPublisher: Bool, towardsServer: Bool) throws {
        let call = try Call(seed: 22)
        let (client, presence) = (isPublisher ? call.ada : call.grace, call.lin.presence)
        client.cut(towardsServer: towardsServer)
        try call.simulation.run(for: .seconds(15))
        client.reconnect()
        try call.simulation.run(for: .seconds(15))
        #expect(client.isConnected && !client.isReturning && client.returns.rejoined == 0)
        #expect(call.lin.presence == presence)
        let shown = call.shown
        try call.simulation.run(for: .seconds(5))
        #expect(call.shown > shown + 75)
    }

    @Test(arguments: UInt64(1)...6)
    func `a client in another network finds its way again, unseen by others`(seed: UInt64) throws {
        for isPublisher in [true, false] {
            let call = try Call(seed: seed, loops: seed % 2 == 0 ? 2 : 1)
            let client = isPublisher ? call.ada : call.grace
            let (id, presence) = (client.participant, call.lin.presence)
            client.changeNetwork()
            try call.simulation.run(for: .seconds(25))
            #expect(client.returns == (1, 0) && client.participant == id)
            #expect(call.lin.presence == presence)
            let shown = call.shown
            let report = try call.simulation.run(for: .seconds(5))
            #expect(call.shown > shown + 75)
            #expect(report.viewers.count == 1)
            // The same again, and the sessions are still those of the beginning.
            client.changeNetwork()
            try call.simulation.run(for: .seconds(30))
            #expect(client.returns == (2, 0))
            #expect(call.shown > shown + 150)
        }
    }

    @Test(arguments: UInt64(41)...48)
    func `a client that sees its address change is back before the silence would tell`(seed: UInt64) throws {
        for isPublisher in [true, false] {
            let call = try Call(seed: seed, loops: seed % 2 == 0 ? 2 : 1)
            let client = isPublisher ? call.ada : call.grace
            let (id, presence) = (client.participant, call.lin.presence)
            client.changeNetwork(isNoticed: true)
            try call.simulation.run(for: .seconds(2))
            #expect(client.returns == (1, 0) && client.participant == id)
            let shown = call.shown
            try call.simulation.run(for: .seconds(2))
            #expect(call.shown > shown + 30)
            #expect(call.lin.presence == presence)
        }
    }

    @Test func `an address that the client does not see changing costs media no more than a check's interval`() throws {
        let call = try Call(seed: 31)
        let presence = call.lin.presence
        call.grace.changeTranslation()
        try call.simulation.run(for: .seconds(7))
        let shown = call.shown
        try call.simulation.run(for: .seconds(3))
        #expect(call.shown > shown + 45)
        #expect(call.lin.presence == presence && call.grace.isConnected)
    }

    @Test func `a client that does not return ends at once, and its participant after the grace period`() throws {
        let simulation = Simulation(seed: 23)
        let (ada, lin) = (simulation.client("ada"), simulation.client("lin"))
        simulation.task {
            try await lin.join("kitchen")
            try await ada.join("kitchen")
        }
        ada.returnTimeout = .zero
        try simulation.run(for: .seconds(2))
        ada.dropSignalling()
        try simulation.run(for: .seconds(1))
        #expect(!ada.isConnected && ada.endError != nil)
        // It had not asked to resume, so the server did not wait.
        #expect(lin.presence == (1, 1))
    }

    @Test func `a client whose process or machine ends is seen as gone after the grace period`() throws {
        for closesConnection in [true, false] {
            let call = try Call(seed: 24)
            let presence = call.lin.presence
            call.ada.kill(closesConnection: closesConnection)
            try call.simulation.run(for: .seconds(28))
            #expect(call.lin.presence == presence)
            #expect(call.simulation.world.server.participants == 3)
            try call.simulation.run(for: .seconds(4))
            #expect(call.lin.presence == (presence.entered, presence.left + 1))
            #expect(call.lin.streams.isEmpty)
            #expect(call.simulation.world.server.participants == 2)
        }
    }

    @Test func `a participant whose media flows stays longer without signalling, but not for ever`() throws {
        let call = try Call(seed: 27)
        let (id, presence) = (call.ada.participant, call.lin.presence)
        call.ada.cutSignalling()
        try call.simulation.run(for: .seconds(70))
        #expect(call.lin.presence == presence)
        call.ada.reconnect()
        try call.simulation.run(for: .seconds(15))
        #expect(call.ada.participant == id && call.ada.returns == (1, 0))
        call.ada.returnTimeout = .seconds(1000)
        call.ada.cutSignalling()
        try call.simulation.run(for: .seconds(145))
        #expect(call.lin.presence == (presence.entered, presence.left + 1))
    }

    @Test func `a session that ends while the client resumes lets it join again`() throws {
        let call = try Call(seed: 28)
        let connection = try #require(call.ada.connection)
        call.ada.dropSignalling()
        while connection.absence?.request == nil { try call.simulation.run(for: .milliseconds(1)) }
        connection.absence?.mustRejoin = true
        try call.simulation.run(for: .seconds(10))
        #expect(call.ada.returns == (0, 1))
    }

    @Test func `an attempt to join again that is over ends no later one`() throws {
        let call = try Call(seed: 29)
        let connection = try #require(call.ada.connection)
        call.ada.dropSignalling()
        try call.simulation.run(for: .milliseconds(1))
        connection.absence?.mustRejoin = true
        for _ in 0..<2000 where !connection.isRejoining { try call.simulation.run(for: .milliseconds(1)) }
        let deadline = try #require(connection.deadline)
        #expect(deadline.deadline != .never)
        call.ada.dropSignalling()
        try call.simulation.run(for: .milliseconds(1))
        #expect(connection.isRejoining && deadline.deadline == .never)
    }

    @Test func `a client whose sign-in is refused does not try again`() throws {
        let call = try Call(seed: 26)
        call.ada.signInError = RoomError(.serviceInvalid, "The secret is wrong.")
        call.ada.dropSignalling()
        try call.simulation.run(for: .seconds(1))
        #expect(!call.ada.isConnected && call.ada.endError != nil)
    }

    @Test func `a client gives up after its timeout`() throws {
        let call = try Call(seed: 25)
        call.simulation.killServer()
        try call.simulation.run(for: .seconds(119))
        #expect(call.ada.isReturning && call.ada.isConnected)
        try call.simulation.run(for: .seconds(3))
        #expect(!call.ada.isConnected && call.ada.endError != nil)
    }
}
