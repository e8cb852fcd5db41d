import FrameSocket
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    /// Programs that connect to a graph, such as the one that shares a screen.
    @Suite struct FeedTests {
        /// A feed node that listens in a temporary folder.
        private func feed(_ folder: TemporaryFolder, _ more: [String: SettingValue] = [:]) -> Node {
            Node(
                "feed",
                settings: [
                    "socket": .text(folder.path + "/feed.sock"), "width": 64, "height": 48, "fps": 100, "timeout": 1,
                ].merging(more) { $1 })
        }

        /// Without `away`, a grey slate shows until the first feeder sends.
        private func running(
            away: String? = nil
        ) async throws -> (TemporaryFolder, Seen, MediaPipeline) {
            let (folder, seen) = (TemporaryFolder(), Seen())
            let settings = away.map { ["away": SettingValue.text($0)] } ?? [:]
            let pipeline = try await MediaPipeline(fed(feed(folder, settings)), seen: seen)
            try await pipeline.start()
            return (folder, seen, pipeline)
        }

        private func connect(_ folder: TemporaryFolder, name: String = "test") throws -> FrameFeed {
            try FrameFeed(socket: folder.path + "/feed.sock", name: name)
        }

        /// Sends a grey frame, and waits for a slot.
        private func send(_ shade: UInt8, _ feed: FrameFeed, at time: UInt64? = nil) throws -> Bool {
            try feed.send(at: time, waiting: 5) { picture in
                for index in 0..<64 * 48 { picture.storeBytes(of: shade, toByteOffset: index, as: UInt8.self) }
            }
        }

        @Test("The graph runs without a feeder; feeders may leave and return, and frames keep their times")
        func comesAndGoes() async throws {
            let (folder, seen, pipeline) = try await running()
            let control = try #require(pipeline.frameFeed("feed"))
            let statuses = Collected<FrameFeedControl.Status>()
            control.onStatus { statuses.append($0) }
            #expect(control.state.status == .notAvailable)
            await eventually("a slate") { !seen.pictures.all.isEmpty }
            for round in 0..<3 {
                var feed: FrameFeed? = try connect(folder, name: "screen \(round)")
                let time = FrameFeed.now
                #expect(try send(UInt8(100 + round), try #require(feed), at: time))
                func shown() -> [Seen.Picture] { seen.pictures.all.filter { $0.brightness == Double(100 + round) } }
                await eventually("the frame") { !shown().isEmpty }
                // A stand-in of the same time comes first.
                let lateness = try #require(shown().first).time.milliseconds(since: MediaTime(nanoseconds: time))
                #expect((0...2).contains(lateness))
                await eventually("the status") {
                    control.state.status == .started && control.state.feeder == "screen \(round)"
                }
                if round == 1 { feed?.finish("enough") }
                feed = nil
                await eventually("its end") { control.state.status == .closed }
                let count = shown().count
                await eventually("the frame stays") { shown().count > count + 1 }
            }
            #expect(statuses.all == [.ready, .started, .closed, .ready, .started, .closed, .ready, .started, .closed])
            #expect(control.state.received == 3 && control.state.taken == 3)
            await eventually("the losses: \(seen.story)") {
                // Events that follow each other fast are reported later.
                seen.deviceEvents.filter { $0 != "returned" } == [
                    "waiting feed.absent", "lost feed.lost", "lost feed.absent", "lost feed.lost",
                ]
            }
            #expect(pipeline.absences["feed"]?.code == "feed.lost" && pipeline.state == .running)
            let times = seen.pictures.all.map(\.time)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
            await pipeline.stop()
            #expect(access(folder.path + "/feed.sock", F_OK) != 0, "the socket goes with the graph")
        }

        @Test("Pause, resume and stop reach the feeder, and its own pause is known")
        func control() async throws {
            let (folder, seen, pipeline) = try await running()
            let control = try #require(pipeline.frameFeed("feed"))
            let feed = try connect(folder)
            #expect(try send(100, feed))
            // Frames in transit when the pause begins are not used.
            await eventually("the first frame") { control.state.taken == 1 }
            control.pause()
            await eventually("the pause") { (try? feed.events().contains(.pause)) == true }
            #expect(try !feed.send { _ in }, "nothing is drawn")
            control.resume()
            await eventually("the end of the pause") { (try? feed.events().contains(.resume)) == true }
            #expect(try send(101, feed))
            try feed.pause()
            await eventually("the feeder's pause") { control.state.isFeederPausing }
            // Longer than the timeout of a feeder that has not reported a pause.
            try await Task.sleep(for: .milliseconds(1500))
            #expect(seen.warnings("feed.silent").isEmpty)
            try feed.resume()
            await eventually("its end") { !control.state.isFeederPausing }
            await eventually("that silence is told now") { !seen.warnings("feed.silent").isEmpty }
            #expect(pipeline.state == .running)
            try feed.askStatus()
            var counts: FeedCounts?
            await eventually("the status") {
                for case .status(let found)? in [try? feed.events().first] { counts = found }
                return counts != nil
            }
            #expect(counts?.received == 2 && counts?.taken == 2)
            control.stop(meetingIsOver: true)
            await eventually("the stop") { (try? feed.isStopped) == true }
            #expect(try feed.events().contains(.stop(.meetingFinished)))
            feed.finish()
            await eventually("its end") { control.state.status == .closed }
            #expect(try send(102, try connect(folder)), "another one may come")
            await pipeline.stop()
        }

        @Test("A graph that stops notifies its feeder")
        func stopped() async throws {
            let folder = TemporaryFolder()
            let pipeline = try await MediaPipeline(fed(feed(folder)), seen: Seen())
            try await pipeline.start()
            let feed = try connect(folder)
            #expect(try send(100, feed))
            await pipeline.stop()
            #expect(try feed.isStopped)
            #expect(try feed.events().contains(.stop(.ended)))
        }

        @Test("A slow graph is visible to its feeder, and drops the oldest frames")
        func slow() async throws {
            let folder = TemporaryFolder()
            let seen = Seen()
            let gate = Gate()
            let graph = fed(feed(folder, ["away": "end"]))
            var bindings = seen.bindings(of: graph)
            bindings.frames["view"] = { [pictures = seen.pictures] frame in
                pictures.append(Seen.Picture(frame))
                gate.wait()
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            let feed = try connect(folder)
            #expect(try send(20, feed))
            await eventually("the first frame") { seen.pictures.count == 1 }
            for index in UInt8(1)...30 { #expect(try send(20 + index, feed), "the oldest frames are dropped") }
            let held = try #require(pipeline.frameFeed("feed")).state.held
            #expect((1...5).contains(held), "\(held)")
            gate.open()
            await eventually("the newest frame") { seen.pictures.all.last?.brightness == 50 }
            #expect(seen.pictures.count < 10)
            await pipeline.stop()
        }

        @Test("A second feeder is refused with a message, and the first continues")
        func busy() async throws {
            let (folder, seen, pipeline) = try await running(away: "end")
            let feed = try connect(folder)
            #expect(try send(100, feed))
            let error = #expect(throws: FrameSocketError.self) { _ = try connect(folder) }
            #expect(error?.code == "feed.busy")
            await eventually("the word") { seen.warnings("feed.busy").count == 1 }
            #expect(try send(101, feed))
            await eventually("both frames") { seen.pictures.count == 2 }
            await pipeline.stop()
        }

        @Test("A socket that is used, too long or in no folder fails the start with a message")
        func places() async throws {
            let (folder, seen, pipeline) = try await running()
            #expect(await failure(of: fed(feed(folder)))?.code == "feed.unavailable")
            // The check whether a graph listens connects too. The running graph does not count it as a lost feeder.
            await eventually("that one is let in") {
                guard let feed = try? connect(folder), (try? send(100, feed)) == true else { return false }
                feed.finish("enough")
                return true
            }
            await eventually("a frame") { seen.pictures.all.contains { $0.brightness == 100 } }
            #expect(seen.warnings("feed.lost").isEmpty, "\(seen.story)")
            for path in ["/nonexistent/feed.sock", "/tmp/" + String(repeating: "x", count: 120)] {
                #expect(await failure(of: fed(feed(folder, ["socket": .text(path)])))?.code == "feed.unavailable")
            }
            await pipeline.stop()
        }

        @Test("A feeder that is refused repeatedly does not keep a valid one out")
        func refused() async throws {
            let (folder, seen, pipeline) = try await running(away: "end")
            for _ in 0..<3 {
                let wrong = try FrameFeed(
                    socket: folder.path + "/feed.sock", format: FrameFormat(.nv12, width: 64, height: 48))
                await eventually("the refusal") {
                    do { return try wrong.events().isEmpty && false } catch {
                        return "\(error)".contains("[feed.format]")
                    }
                }
            }
            #expect(try send(100, try connect(folder)))
            await eventually("the frame") { seen.pictures.count == 1 }
            await pipeline.stop()
            // The feeder gets its refusal before the application does.
            #expect(seen.warnings("feed.format").count == 3)
        }

        @Test("Feeders that cannot be accepted are reported once, and the next one is accepted")
        func noDescriptor() async throws {
            let (folder, seen, pipeline) = try await running()
            let path = folder.path + "/feed.sock"
            let listener = try #require(listeningDescriptor(at: path))
            // It fails like accept in a process without a free descriptor, which would disturb other tests. The copy keeps
            // the listener's queue.
            let (copy, deaf) = (dup(listener), socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0))
            #expect(dup2(deaf, listener) == listener)
            var waiting: MessageSocket? = try MessageSocket.connect(to: path)
            await eventually("the warning") { !seen.warnings("feed.unavailable").isEmpty }
            withExtendedLifetime(waiting) {}
            waiting = nil
            #expect(dup2(copy, listener) == listener)
            for number in [copy, deaf] { close(number) }
            var feed: FrameFeed?
            await eventually("a feeder is accepted") {
                feed = try? connect(folder)
                return feed != nil
            }
            #expect(try send(100, #require(feed)))
            await eventually("the frame") { seen.pictures.all.contains { $0.brightness == 100 } }
            #expect(seen.warnings("feed.unavailable").count == 1)
            await pipeline.stop()
        }

        /// The descriptor of this process that listens at a path.
        private func listeningDescriptor(at path: String) -> Int32? {
            (3..<1024).first { number in
                var (isListening, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
                guard getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening != 0 else {
                    return false
                }
                var address = sockaddr_un()
                var length = socklen_t(MemoryLayout<sockaddr_un>.size)
                let answer = withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
                }
                guard answer == 0, address.sun_family == sa_family_t(AF_UNIX) else { return false }
                return withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
                    == path
            }
        }

        @Test("A feeder that neither reads nor ends blocks nothing")
        func deaf() async throws {
            let folder = TemporaryFolder()
            // Each slot is used again after a quarter of a second, long after the graph has released it.
            let program = """
                os.ftruncate(memory, 64 * size)
                hello(slots=64)
                while graph.recv(512)[0] != 0x11: pass
                for n in range(5000):
                  frame(n % 64)
                  time.sleep(0.004)
                time.sleep(1000)
                """
            let command = Feeder.write(program, hello: "0", into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                fed(Node("process", settings: ["command": .text(command), "width": 64, "height": 48, "fps": 240])),
                seen: seen)
            try await pipeline.start()
            // The feeder did not read more releases than the socket holds, and than there are slots.
            await eventually(within: 20, "that it is said: \(seen.story)") { !seen.warnings("feed.closed").isEmpty }
            #expect(seen.pictures.count > 64)
            await pipeline.stop()
            #expect(ProcessTests.children(of: getpid()).isEmpty)
        }

        @Test("A feeder that does not read for a while still receives its pause")
        func hardOfHearing() async throws {
            let folder = TemporaryFolder()
            // Twenty more releases than its socket holds are in transit when it is closed.
            let program = """
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                ours.setblocking(False)
                room = 0
                try:
                  while ours.send(bytes(12)): room += 1
                except BlockingIOError: pass
                os.ftruncate(memory, 64 * size)
                hello(slots=64)
                while graph.recv(512)[0] != 0x11: pass
                for n in range(room + 20):
                  frame(n % 64)
                  time.sleep(0.004)
                open("\(folder.path)/full", "w").close()
                while not os.path.exists("\(folder.path)/told"): time.sleep(0.01)
                while graph.recv(512)[0] != 0x14: pass
                open("\(folder.path)/heard", "w").close()
                time.sleep(1000)
                """
            let command = Feeder.write(program, hello: "0", into: folder)
            let seen = Seen()
            let node = Node(
                "process", name: "fed", settings: ["command": .text(command), "width": 64, "height": 48, "fps": 240])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            await eventually(within: 20, "that it is full: \(seen.story)") { access(folder.path + "/full", F_OK) == 0 }
            let control = try #require(pipeline.frameFeed("fed"))
            await eventually("all of its frames") { control.state.received == control.state.taken }
            control.pause()
            writeFile([], to: folder.path + "/told")
            await eventually("that it hears of it: \(seen.story)") { access(folder.path + "/heard", F_OK) == 0 }
            #expect(seen.warnings("feed.closed").isEmpty)
            await pipeline.stop()
        }

        @Test("A feeder that only requests the status counts as silent")
        func asking() async throws {
            let (folder, seen, pipeline) = try await running()
            let feed = try connect(folder)
            #expect(try send(100, feed))
            await eventually("that it is said: \(seen.story)") {
                try? feed.askStatus()
                return !seen.warnings("feed.silent").isEmpty
            }
            #expect(pipeline.state == .running)
            await pipeline.stop()
        }

        @Test("Feeders without frames are accepted five times a second, and a valid one soon")
        func comingAndGoing() async throws {
            let (folder, seen, pipeline) = try await running()
            let start = ContinuousClock.now
            var count = 0
            while ContinuousClock.now - start < .seconds(1) {
                if (try? connect(folder)) != nil { count += 1 }
            }
            let most = Int((ContinuousClock.now - start) / .milliseconds(200)) + 2
            #expect((1...most).contains(count), "\(count) of \(most)")
            #expect(seen.warnings("feed.lost").count <= most, "\(seen.story)")
            await eventually("that one is let in") { (try? send(100, try connect(folder))) == true }
            await eventually("the frame") { seen.pictures.all.contains { $0.brightness == 100 } }
            await pipeline.stop()
        }

        @Test("Warnings about feeders that reconnect after one frame are limited to a readable number")
        func flooding() async throws {
            let (folder, seen, pipeline) = try await running()
            let start = ContinuousClock.now
            let control = try #require(pipeline.frameFeed("feed"))
            for count in 1...60 {
                await eventually("feeder \(count)") { (try? send(100, try connect(folder))) == true }
                await eventually("its frame") { control.state.taken == count }
            }
            await eventually("the last one's end") { control.state.status == .closed }
            await pipeline.stop()
            let said = seen.warnings("feed.lost").count + seen.warnings("feed.busy").count
            let lost = seen.deviceEvents.count { $0.hasPrefix("lost") }
            #expect(lost > 0, "the first losses are reported")
            #expect(said + lost <= 32 + 2 * Int((ContinuousClock.now - start) / .seconds(1)), "\(said) and \(lost)")
        }

        @Test("An encoded feed gets a keyframe request, and passes from the keyframe on", arguments: ["mjpeg", "vp8"])
        func encoded(format: String) async throws {
            let folder = TemporaryFolder()
            let pictures = try await EncodedPictures.make(format, count: 8)
            let seen = Seen()
            let node = feed(
                folder, ["format": .text(format), "width": 320, "height": 240, "away": "end", "timeout": 60])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            let feed = try connect(folder)
            func put(_ bytes: [UInt8]) throws -> Bool {
                try feed.send(isKeyframe: true, waiting: 5) { slot in
                    for index in bytes.indices {
                        slot.storeBytes(of: bytes[index], toByteOffset: index, as: UInt8.self)
                    }
                    return bytes.count
                }
            }
            if format == "vp8" {
                #expect(try put(pictures[1]))
                await eventually("the wish") { (try? feed.events().contains(.keyframeWanted)) == true }
            }
            for (index, picture) in pictures.enumerated() {
                #expect(try put(picture))
                await eventually("frame \(index): \(seen.story)") { seen.pictures.count == index + 1 }
            }
            #expect(seen.barCodes == Array(0..<UInt32(pictures.count)))
            #expect(try put([0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]))
            await eventually("that it is refused: \(seen.story)") { !seen.warnings("feed.format").isEmpty }
            await eventually("the end of a node that needs its feeder") { seen.failures.first?.code == "feed.format" }
            await pipeline.stop()
        }

        @Test("An encoded feed repeats its last keyframe while its feeder is away, and goes on with a keyframe")
        func encodedComesAndGoes() async throws {
            let folder = TemporaryFolder()
            let pictures = try await EncodedPictures.make("vp8", count: 8)
            let seen = Seen()
            let node = feed(folder, ["format": "vp8", "width": 320, "height": 240, "timeout": 60])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            func put(_ bytes: [UInt8], _ feed: FrameFeed) throws {
                #expect(
                    try feed.send(isKeyframe: true, waiting: 5) { slot in
                        for index in bytes.indices {
                            slot.storeBytes(of: bytes[index], toByteOffset: index, as: UInt8.self)
                        }
                        return bytes.count
                    })
            }
            let first = try connect(folder)
            for picture in pictures { try put(picture, first) }
            await eventually("all frames: \(seen.story)") { seen.barCodes.last == 7 }
            first.finish("enough")
            await eventually("its keyframe again") { seen.barCodes.suffix(2) == [0, 0] }
            let second = try connect(folder)
            try put(pictures[1], second)
            await eventually("the wish") { (try? second.events().contains(.keyframeWanted)) == true }
            for picture in pictures { try put(picture, second) }
            await eventually("all frames again: \(seen.story)") { seen.barCodes.last == 7 }
            let repeated = seen.barCodes.drop { $0 != 0 }.dropFirst(8)
            #expect(Array(repeated.drop { $0 == 0 }) == Array(1...7), "nothing but keyframes between the feeders")
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("Connecting and disconnecting feeders leaks no thread, descriptor or memory")
        func manyFeeders() async {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                Repeated.trace()
                let folder = TemporaryFolder()
                let pipeline = try await MediaPipeline(
                    MediaGraph {
                        Chain {
                            Node(
                                "feed",
                                settings: [
                                    "socket": .text(folder.path + "/feed.sock"), "width": 1280, "height": 720,
                                    "fps": 240,
                                ])
                            Node.null("end")
                        }
                    })
                try await pipeline.start()
                let control = try #require(pipeline.frameFeed("feed"))
                // One leaked pool per round would be 8 MB.
                try await Repeated.judge(soak: 200, kilobytes: 40_000) {
                    let deadline = ContinuousClock.now + .seconds(10)
                    let before = control.state.taken
                    while true {
                        do {
                            let feed = try FrameFeed(socket: folder.path + "/feed.sock")
                            for _ in 0..<3 { Repeated.demand(try feed.send(waiting: 5) { _ in }, "no room") }
                            while control.state.taken < before + 3, ContinuousClock.now < deadline {
                                try await Task.sleep(for: .milliseconds(1))
                            }
                            break
                        } catch let error as FrameSocketError where error.code == "feed.busy" {
                            // The previous one is still ending.
                            Repeated.demand(ContinuousClock.now < deadline, "it stays busy")
                            try await Task.sleep(for: .milliseconds(1))
                        }
                    }
                    Repeated.demand(control.state.taken >= before + 3, "frames are missing")
                }
                await pipeline.stop()
            }
            Repeated.show(result)
        }
    }
}

/// Encoded frames of the test pattern, by number.
enum EncodedPictures {
    static func make(_ format: String, count: Int) async throws -> [[UInt8]] {
        // Bare elements, because the encoder node has a queue, which drops frames on a busy machine.
        let folder = TemporaryFolder()
        let pipeline = try await MediaPipeline(
            MediaGraph {
                Chain {
                    Node.testPattern(width: 320, height: 240, frames: count)
                    format == "mjpeg" ? Node.element("jpegenc") : Node.element("vp8enc", ["deadline": 1])
                    Node.element("multifilesink", ["location": .text(folder.path + "/%03d")])
                }
            })
        try await pipeline.start()
        await eventually("\(count) files") { pipeline.state == .ended }
        await pipeline.stop()
        return try fileNames(in: folder.path).sorted().map { name in
            let file = try #require(fopen(folder.path + "/" + name, "rb"))
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let length = fread(&bytes, 1, bytes.count, file)
            return Array(bytes.prefix(length))
        }
    }
}
