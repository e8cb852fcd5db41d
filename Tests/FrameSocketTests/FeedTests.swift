import Dispatch
import Glibc
import Synchronization
import Testing

@testable import FrameSocket

/// The feeding side on a real socket, with a receiver of the tests.
@Suite struct FeedTests {
    /// Accepts one feeder and reads its hello.
    private struct Host {
        let socket: MessageSocket
        var intake: FrameIntake

        init(_ socket: MessageSocket, _ format: FrameFormat = small) {
            self.socket = socket
            intake = FrameIntake(wanted: format, now: FrameFeed.now)
            socket.send(.greeting(format))
        }

        mutating func next() throws -> FrameIntake.Event? {
            _ = socket.waitUntilReadable(seconds: 5)
            guard case .message(let bytes, let descriptors, let isCut) = socket.receive() else { return nil }
            return try intake.receive(bytes, memory: descriptors.map(\.sealedBytes), isCut: isCut, now: FrameFeed.now)
        }
    }

    /// A feed and its host, connected.
    private func connected(slots: Int = 3) throws -> (FrameFeed, Host) {
        let (mine, theirs) = try MessageSocket.pair()
        var host = Host(mine)
        let feed = try FrameFeed(descriptor: dup(theirs.number), name: "test", slots: slots)
        guard case .memory? = try host.next() else { throw FrameSocketError.malformed("no hello") }
        return (feed, host)
    }

    @Test func `frames arrive, and slots return`() throws {
        var (feed, host) = try connected()
        #expect(feed.wanted == small)
        #expect(try !feed.send { _ in }, "nothing is wanted before the start")
        host.socket.send(.start)
        #expect(try feed.events() == [.started])
        for _ in 0..<3 { #expect(try feed.send { $0.storeBytes(of: 7, as: UInt8.self) }) }
        #expect(try !feed.send { _ in }, "every slot is in use")
        #expect(feed.skipped == 2)
        for slot in UInt32(0)..<3 {
            guard case .frame(let picture)? = try host.next() else { return #expect(Bool(false), "no frame") }
            #expect(picture.slot == slot && picture.range.count == small.bytesPerFrame && picture.remark == nil)
        }
        let isNews = host.intake.release(pool: 1, slot: 1)
        #expect(isNews)
        host.socket.send(.release(pool: 1, slot: 1))
        #expect(try feed.send { _ in })
        guard case .frame(let picture)? = try host.next() else { return #expect(Bool(false), "no frame") }
        #expect(picture.slot == 1)
    }

    @Test func `a feeder that waits for a slot gets the next released one`() async throws {
        let (feed, host) = try connected(slots: 1)
        host.socket.send(.start)
        #expect(try feed.send { _ in })
        let socket = host.socket
        async let sent = Task.detached { try feed.send(waiting: 10) { _ in } }.value
        socket.send(.release(pool: 1, slot: 0))
        #expect(try await sent)
    }

    @Test func `a pause draws nothing until it ends, and a stop ends the feed`() throws {
        let (feed, host) = try connected()
        host.socket.send(.start)
        host.socket.send(.pause)
        #expect(try !feed.send { _ in })
        host.socket.send(.resume)
        host.socket.send(.keyframeWanted)
        #expect(try feed.send { _ in })
        #expect(try feed.events() == [.started, .pause, .resume, .keyframeWanted])
        host.socket.send(.stop(.meetingFinished))
        #expect(try feed.isStopped)
        #expect(try !feed.send { _ in })
        #expect(try feed.events() == [.stop(.meetingFinished)])
    }

    @Test func `messages of the feeder reach the other end`() throws {
        var (feed, host) = try connected()
        try feed.pause()
        try feed.resume()
        try feed.askStatus()
        feed.finish("enough")
        #expect(try host.next() == .paused)
        #expect(try host.next() == .resumed)
        #expect(try host.next() == .statusAsked)
        #expect(try host.next() == .bye("enough"))
    }

    @Test func `the last messages arrive even if the sender has not read everything`() throws {
        var connection: (FrameFeed, Host)? = try connected()
        var host = try #require(connection).1
        host.socket.send(.start)
        connection?.0.finish("enough")
        connection = nil
        #expect(try host.next() == .bye("enough"))
    }

    @Test func `shared memory can change during the connection`() throws {
        var (feed, host) = try connected()
        host.socket.send(.start)
        #expect(try feed.send { _ in })
        _ = try host.next()
        try feed.change(to: small, slots: 2)
        guard case .memory(2, let bytes, _, false)? = try host.next() else { return #expect(Bool(false), "no memory") }
        #expect(bytes == 2 * small.bytesPerFrame)
        host.socket.send(.release(pool: 1, slot: 0))
        #expect(try feed.send { _ in })
        #expect(try feed.send { _ in })
        #expect(try !feed.send { _ in }, "the slot of the old memory is none of the new")
    }

    @Test func `a frame begun before a change is not part of the new memory`() throws {
        var (feed, host) = try connected()
        host.socket.send(.start)
        for _ in 0..<2 {
            #expect(try feed.send { _ in })
            _ = try host.next()
        }
        // As another thread may do while this one draws into slot 2.
        func change() { #expect(throws: Never.self) { try feed.change(to: small, slots: 1) } }
        #expect(try !feed.send { _ in change() })
        guard case .memory(2, _, _, false)? = try host.next() else { return #expect(Bool(false), "no memory") }
        #expect(try feed.send { _ in })
        guard case .frame(let picture)? = try host.next() else { return #expect(Bool(false), "no frame") }
        #expect(picture.pool == 2 && picture.slot == 0)
        #expect(try !feed.send { _ in })
    }

    @Test func `a slot of the old memory is not released as a slot of the new one`() throws {
        var (feed, host) = try connected()
        host.socket.send(.start)
        for _ in 0..<2 { #expect(try feed.send { _ in }) }
        let isSent = try feed.send(isKeyframe: true) { _ in
            #expect(throws: Never.self) { try feed.change(to: small, slots: 1) }
            return 0
        }
        #expect(!isSent)
        for _ in 0..<3 { _ = try host.next() }
        #expect(try feed.send { _ in })
        guard case .frame(let picture)? = try host.next() else { return #expect(Bool(false), "no frame") }
        #expect(picture.pool == 2 && picture.slot == 0)
    }

    @Test func `messages read by two threads are recorded in order`() throws {
        let (feed, host) = try connected()
        host.socket.send(.start)
        #expect(try feed.events() == [.started])
        for _ in 0..<100 {
            for _ in 0..<30 {
                host.socket.send(.pause)
                host.socket.send(.resume)
            }
            DispatchQueue.concurrentPerform(iterations: 2) { _ in _ = try? feed.isStopped }
            let heard = try feed.events()
            #expect(heard == (0..<60).map { $0 % 2 == 0 ? .pause : .resume })
        }
    }

    @Test func `a feeder that waits for a slot gets it even if another thread reads the release`() throws {
        let (feed, host) = try connected(slots: 1)
        host.socket.send(.start)
        #expect(try feed.send { _ in })
        for _ in 0..<50 {
            let start = ContinuousClock.now
            DispatchQueue.concurrentPerform(iterations: 2) { index in
                if index == 0 {
                    #expect((try? feed.send(waiting: 20) { _ in }) == true)
                } else {
                    usleep(1000)
                    host.socket.send(.release(pool: 1, slot: 0))
                    for _ in 0..<20 { _ = try? feed.isStopped }
                }
            }
            #expect(ContinuousClock.now - start < .seconds(10))
        }
    }

    @Test func `a slot that was not announced cannot be released`() throws {
        let (feed, host) = try connected()
        host.socket.send(.start)
        for slot: UInt32 in [0, 3, 99, .max] { host.socket.send(.release(pool: 1, slot: slot)) }
        for _ in 0..<3 { #expect(try feed.send { _ in }) }
        #expect(try !feed.send { _ in })
    }

    @Test func `an invalid frame size is refused from either end`() throws {
        let sizes = [(0, 0), (15, 48), (64, 8193), (40_000, 40_000), (0xffff_ffff, 0xffff_ffff)]
        for (width, height) in sizes {
            for encoding: FrameFormat.Encoding in [.i420, .bgra, .h264] {
                let format = FrameFormat(encoding, width: width, height: height)
                let (mine, theirs) = try MessageSocket.pair()
                mine.send(.greeting(format))
                #expect(refusal { _ = try FrameFeed(descriptor: dup(theirs.number)) } == "feed.format")
                mine.send(.greeting(small))
                #expect(refusal { _ = try FrameFeed(descriptor: dup(theirs.number), format: format) } == "feed.format")
                let (feed, _) = try connected()
                #expect(refusal { try feed.change(to: format) } == "feed.format")
                #expect(feed.format == small)
            }
        }
    }

    @Test func `invalid waiting times are clamped`() throws {
        let (feed, host) = try connected(slots: 1)
        host.socket.send(.start)
        #expect(try feed.send(waiting: .infinity) { _ in })
        for seconds in [-1, -.infinity, .nan] as [Double] { #expect(try !feed.send(waiting: seconds) { _ in }) }
        host.socket.send(.stop(.ended))
        for seconds in [.infinity, .greatestFiniteMagnitude] as [Double] {
            #expect(try !feed.send(waiting: seconds) { _ in })
        }
        #expect(try feed.events(waiting: .infinity) == [.started, .stop(.ended)])
        #expect(try feed.events(waiting: .infinity).isEmpty)
    }

    @Test func `a refusal is thrown with the other end's code`() throws {
        let (feed, host) = try connected()
        host.socket.send(.failure(FrameSocketError(code: "feed.format", "Not so.")))
        #expect(refusal { try feed.send { _ in } } == "feed.format")
        #expect(refusal { _ = try feed.events() } == "feed.format")
    }

    @Test func `silence and closing of the other end are distinguished from a refusal`() throws {
        let (mine, theirs) = try MessageSocket.pair()
        mine.send(.failure(FrameSocketError(code: "feed.busy", "Taken.")))
        #expect(refusal { _ = try FrameFeed(descriptor: dup(theirs.number)) } == "feed.busy")
        #expect(refusal { _ = try FrameFeed(socket: "/nonexistent/feed.sock") } == "feed.unavailable")
        #expect(refusal { _ = try FrameFeed(socket: "/" + String(repeating: "x", count: 200)) } == "feed.unavailable")
        unsetenv(FrameFeed.environmentVariable)
        #expect(refusal { _ = try FrameFeed.fromEnvironment() } == "feed.closed")
        var connection: (FrameFeed, Host)? = try connected()
        let feed = try #require(connection).0
        connection = nil
        #expect(refusal { try feed.send { _ in } } == "feed.closed")
    }

    @Test func `a listener is private to its user, ends with its file, and replaces one that died`() throws {
        let path = "/tmp/frame-socket-test-\(getpid()).sock"
        do {
            let listener = try MessageListener(path: path)
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
            #expect(refusal { _ = try MessageListener(path: path) } == "feed.unavailable")
            let client = try MessageSocket.connect(to: path)
            // The check whether a graph listens has also connected.
            #expect(accept(listener) != nil && accept(listener) != nil && accept(listener) == nil)
            #expect(client.peer?.user == getuid())
        }
        #expect(access(path, F_OK) != 0)
        leaveSocket(at: path)
        #expect(access(path, F_OK) == 0)
        _ = try MessageListener(path: path)
    }

    private func accept(_ listener: MessageListener) -> MessageSocket? {
        guard case .connection(let socket) = listener.accept() else { return nil }
        return socket
    }

    @Test func `a listener that cannot accept tells that apart from nobody waiting`() throws {
        let path = "/tmp/frame-socket-fault-\(getpid()).sock"
        let listener = try MessageListener(path: path)
        guard case .nothing = listener.accept() else { throw Unexpected() }
        // It fails like accept in a process without a free descriptor, which would disturb other tests.
        let deaf = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        #expect(dup2(deaf, listener.number) == listener.number)
        close(deaf)
        guard case .failed(let error) = listener.accept() else { throw Unexpected() }
        #expect(error.code == "feed.unavailable" && error.message.contains("cannot accept a feeder"), "\(error)")
    }

    private struct Unexpected: Error {}

    /// A killed process's leftover: a socket file without a listener.
    private func leaveSocket(at path: String) {
        let left = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(left, $0, size) }
        }
        close(left)
    }

    @Test func `of many listeners for one path, exactly one succeeds and is reachable`() throws {
        let path = "/tmp/frame-socket-rush-\(getpid()).sock"
        for _ in 0..<200 {
            leaveSocket(at: path)
            let made = Mutex<[MessageListener]>([])
            DispatchQueue.concurrentPerform(iterations: 4) { _ in
                guard let listener = try? MessageListener(path: path) else { return }
                made.withLock { $0.append(listener) }
            }
            let listeners = made.withLock { $0 }
            try #require(listeners.count == 1)
            while accept(listeners[0]) != nil {}
            _ = try MessageSocket.connect(to: path)
            #expect(accept(listeners[0]) != nil)
        }
    }

    @Test func `creating a socket waits for the folder's lock, with a timeout`() throws {
        let folder = "/tmp/frame-socket-turn-\(getpid())"
        #expect(mkdir(folder, 0o700) == 0)
        defer { rmdir(folder) }
        let other = Descriptor(taking: open(folder, O_RDONLY))
        #expect(flock(other.number, LOCK_EX) == 0)
        #expect(refusal { _ = try MessageListener(path: folder + "/feed.sock") } == "feed.unavailable")
        #expect(flock(other.number, LOCK_UN) == 0)
        _ = try MessageListener(path: folder + "/feed.sock")
    }

    @Test func `a listener that accepts no connections blocks nothing, and is retried for a while`() throws {
        let path = "/tmp/frame-socket-full-\(getpid()).sock"
        let listener = try MessageListener(path: path)
        var waiting: [MessageSocket] = []
        while let socket = try? MessageSocket.connect(to: path) { waiting.append(socket) }
        let count = waiting.count
        #expect((1...50).contains(count))
        #expect(refusal { _ = try MessageListener(path: path) } == "feed.unavailable")
        let feed = Mutex<FrameFeed?>(nil)
        let accepted = Mutex<[MessageSocket]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { index in
            if index == 0 {
                #expect(throws: Never.self) {
                    let made = try FrameFeed(socket: path)
                    feed.withLock { $0 = made }
                }
            } else {
                usleep(50_000)
                for _ in 0...count {
                    let deadline = ContinuousClock.now + .seconds(5)
                    while ContinuousClock.now < deadline {
                        if let socket = accept(listener) {
                            socket.send(.greeting(small))
                            accepted.withLock { $0.append(socket) }
                            break
                        }
                        usleep(1000)
                    }
                }
            }
        }
        #expect(feed.withLock { $0?.wanted } == small)
    }

    @Test func `a closed listener frees its path immediately`() throws {
        let path = "/tmp/frame-socket-withdrawn-\(getpid()).sock"
        var first: MessageListener? = try MessageListener(path: path)
        try #require(first).withdraw()
        #expect(access(path, F_OK) != 0)
        let second = try MessageListener(path: path)
        first = nil
        #expect(access(path, F_OK) == 0)
        #expect(second.path == path)
    }

    @Test func `a file that is not a socket is left alone`() throws {
        let path = "/tmp/frame-socket-file-\(getpid())"
        let file = try #require(fopen(path, "w"))
        fclose(file)
        defer { unlink(path) }
        #expect(refusal { _ = try MessageListener(path: path) } == "feed.unavailable")
        #expect(access(path, F_OK) == 0)
    }

    @Test func `descriptors beyond the accepted ones are closed`() throws {
        let (mine, theirs) = try MessageSocket.pair()
        let sender = MessageSocket(theirs)
        let before = descriptors()
        for _ in 0..<100 {
            let attached = Descriptor(taking: dup(0))
            #expect(sender.send([1], attached))
            guard case .message(_, let came, let isCut) = mine.receive() else { return #expect(Bool(false)) }
            #expect(came.count == 1 && came[0].sealedBytes == nil && !isCut)
            #expect(send(5, copiesOf: 0, over: sender))
            guard case .message(_, let more, let isMoreCut) = mine.receive() else { return #expect(Bool(false)) }
            #expect(more.count <= 4 && isMoreCut)
        }
        #expect(descriptors() == before)
    }

    /// Sends a message with several descriptors, as only a broken feeder does.
    private func send(_ count: Int, copiesOf descriptor: Int32, over socket: MessageSocket) -> Bool {
        // struct cmsghdr: the total length, level and type; then the descriptors, padded to 8 bytes.
        var control = [UInt64](repeating: 0, count: 2 + (count + 1) / 2)
        var byte: UInt8 = 1
        return control.withUnsafeMutableBytes { control in
            control.storeBytes(of: 16 + count * 4, as: Int.self)
            control.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
            control.storeBytes(of: Int32(SCM_RIGHTS), toByteOffset: 12, as: Int32.self)
            for index in 0..<count {
                control.storeBytes(of: descriptor, toByteOffset: 16 + index * 4, as: Int32.self)
            }
            return withUnsafeMutablePointer(to: &byte) { byte in
                var part = iovec(iov_base: byte, iov_len: 1)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    return sendmsg(socket.number, &message, 0) == 1
                }
            }
        }
    }

    private func descriptors() -> Int {
        guard let folder = opendir("/proc/self/fd") else { return -1 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }
}
