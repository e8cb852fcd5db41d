import FrameSocket
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    /// Programs that the graph starts, and that send frames over the frame socket.
    @Suite struct ProcessTests {
        private func clock(_ more: [String: SettingValue] = [:]) -> Node {
            Node(
                "process",
                settings: [
                    "command": .text("/usr/bin/python3 '\(Feeder.example)'"), "width": 320, "height": 240, "fps": 60,
                ].merging(more) { $1 })
        }

        @Test("A program in Python sends frames with increasing bar codes and their capture times")
        func clockProgram() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(fed(clock()), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "sixty frames") { seen.pictures.count >= 60 }
            await pipeline.stop()
            let codes = seen.barCodes
            #expect(codes.count == seen.pictures.count, "every frame has its code")
            #expect(zip(codes, codes.dropFirst()).allSatisfy { $0 < $1 }, "\(codes)")
            #expect(zip(seen.pictures.all, seen.pictures.all.dropFirst()).allSatisfy { $0.time < $1.time })
            #expect(seen.failures.isEmpty && seen.warnings("feed.bad-time").isEmpty)
        }

        @Test(
            "Every raw format arrives, also with gaps between rows",
            arguments: ["I420", "NV12", "BGRx", "BGRA", "RGBA", "YUY2"])
        func formats(format: String) async throws {
            let folder = TemporaryFolder()
            let program = """
                layouts = {"I420": [(width, height, 150), (width // 2, height // 2, 128), (width // 2, height // 2, 128)],
                    "NV12": [(width, height, 150), (width, height // 2, 128)]}
                planes = layouts.get(code.decode(), [(width * (2 if code == b"YUY2" else 4), height, 128)])
                places, at, data = [], 64, bytearray(64)
                for row, rows, shade in planes:
                    places.append((at, row + 24))
                    at += (row + 24) * rows
                    data += (bytes([shade]) * row + bytes(24)) * rows
                memory = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
                os.write(memory, bytes(data) * 4)
                fcntl.fcntl(memory, 1033, 2)
                hello(slots=4, size=len(data), descriptors=[memory])
                while graph.recv(512)[0] != 0x11: pass
                for slot in range(4):
                    frame(slot, length=len(data), planes=places)
                    time.sleep(0.05)
                while True:
                    message = graph.recv(512)
                    if not message: sys.exit(0)
                    if message[0] == 0x12:
                        frame(message[8], length=len(data), planes=places)
                        time.sleep(0.05)
                """
            let seen = Seen()
            let command = Feeder.write(program, hello: "True", into: folder)
            let pipeline = try await MediaPipeline(
                fed(clock(["command": .text(command), "format": .text(format)])), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "ten frames: \(seen.story)") { seen.pictures.count >= 10 }
            await pipeline.stop()
            let shades = Set(seen.pictures.all.map { Int($0.brightness.rounded()) })
            // Grey in full range (128 of 255) is 126 in video range.
            let expected = format == "I420" || format == "NV12" ? 150 : format == "YUY2" ? 128 : 126
            #expect(shades == [expected], "no gap counts as part of a frame")
            #expect(seen.pictures.all.allSatisfy { $0.width == 320 && $0.height == 240 })
        }

        @Test("A frame that is changed downstream is copied first: the program's memory is not written")
        func inPlace() async throws {
            let seen = Seen()
            let graph = MediaGraph {
                Chain {
                    clock()
                    Node("mirror")
                    Node.frames("view")
                }
            }
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "pictures") { seen.pictures.count >= 10 }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("A killed program is restarted, and the same pipeline continues")
        func killed() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(fed(clock()), seen: seen)
            try await pipeline.start()
            let control = try #require(pipeline.frameFeed("process"))
            for round in 0..<3 {
                await eventually(within: 30, "pictures") {
                    seen.pictures.count >= 10 && control.state.status == .started
                }
                let children = Self.children(of: getpid())
                try #require(children.count == 1)
                kill(children[0], SIGKILL)
                await eventually(within: 30, "its end") { seen.warnings("process.ended").count == round + 1 }
                #expect(seen.warnings("process.ended").last?.contains("killed by signal 9") == true)
                let before = seen.pictures.count
                await eventually(within: 30, "frames of the next") { seen.pictures.count >= before + 10 }
            }
            #expect(pipeline.state == .running && seen.failures.isEmpty)
            await pipeline.stop()
            #expect(Self.children(of: getpid()).isEmpty, "no program outlives its graph")
        }

        /// The children of this process that it has not waited for.
        static func children(of parent: pid_t) -> [pid_t] {
            fileNames(in: "/proc").compactMap { pid_t($0) }.filter { process in
                guard let file = fopen("/proc/\(process)/stat", "r") else { return false }
                defer { fclose(file) }
                var line = [UInt8](repeating: 0, count: 256)
                let count = fread(&line, 1, line.count, file)
                let text = String(decoding: line.prefix(count), as: UTF8.self)
                let fields = text.split(separator: ")").last?.split(separator: " ")
                return fields?.dropFirst().first.flatMap { pid_t($0) } == parent
            }
        }

        /// A program's mistakes, and their error codes.
        struct Wrong: Sendable, CustomTestStringConvertible {
            let what: String
            let code: String
            let program: String
            var ownHello = false
            var testDescription: String { what }
        }

        static let wrongs = [
            Wrong(what: "traps", code: "process.ended", program: "frame(0); time.sleep(0.2); os.abort()"),
            Wrong(
                what: "hangs", code: "feed.silent",
                program: "frame(0); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"),
            Wrong(what: "uses a slot it does not have", code: "feed.no-credit", program: "while True: frame(0)"),
            Wrong(
                what: "floods", code: "feed.too-fast",
                program: "frame(0)\nwhile True:\n  graph.send(struct.pack('<I', 4))"),
            Wrong(
                what: "has frames outside of its memory", code: "feed.bad-frame",
                program: "frame(3, offset=4096)\ndrain()"),
            Wrong(
                what: "has strides that reach too far", code: "feed.bad-frame",
                program: "frame(0, planes=[(0, 1 << 20)] * 3)\ndrain()"),
            Wrong(
                what: "speaks nonsense", code: "feed.malformed",
                program: "graph.send(os.urandom(64)); graph.send(b'hi'); drain()"),
            Wrong(
                what: "sends too long a message", code: "feed.malformed", program: "graph.send(bytes(60000)); drain()"),
            Wrong(
                what: "sends many descriptors", code: "feed.malformed",
                program: "socket.send_fds(graph, [struct.pack('<I', 3)], [memory] * 200); drain()"),
            Wrong(
                what: "sends a descriptor where none belongs", code: "feed.descriptors",
                program: "socket.send_fds(graph, [struct.pack('<I', 3)], [memory]); drain()"),
            Wrong(
                what: "says another size", code: "feed.format", program: "hello(width=640, size=size * 2); drain()",
                ownHello: true),
            Wrong(
                what: "says another format", code: "feed.format", program: "hello(code=b'BGRx'); drain()",
                ownHello: true),
            Wrong(
                what: "speaks another version", code: "feed.version", program: "hello(version=7); drain()",
                ownHello: true),
            Wrong(
                what: "shares a file", code: "feed.memory",
                program: "hello(descriptors=[os.open('/dev/zero', os.O_RDWR)]); drain()", ownHello: true),
            Wrong(
                what: "shares memory that can shrink", code: "feed.memory",
                program:
                    "m = os.memfd_create('x', os.MFD_ALLOW_SEALING); os.ftruncate(m, 4 * size); "
                    + "hello(descriptors=[m]); drain()",
                ownHello: true),
            Wrong(what: "shares too little", code: "feed.memory", program: "hello(slots=5); drain()", ownHello: true),
            Wrong(what: "never says hello", code: "process.silent", program: "time.sleep(1000)", ownHello: true),
            Wrong(
                what: "states times that cannot be", code: "feed.bad-time",
                program: "frame(0, stated=1); frame(1, stated=time.monotonic_ns() + 10**12); drain()"),
        ]

        @Test("A program's mistake is reported with a code, and harms nothing else", arguments: wrongs)
        func wrong(_ wrong: Wrong) async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write(wrong.program, hello: wrong.ownHello ? "True" : "None", into: folder)
            let node = clock(["command": .text(command), "timeout": 1])
            try await expectHarmless(node, toldAs: wrong.code, within: 30)
        }

        @Test("A refused program is reported in one line for each try, which does not blame a signal")
        func refused() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write("hello(slots=5); drain()", hello: "True", into: folder)
            let seen = Seen()
            let graph = MediaGraph {
                Chain {
                    clock(["command": .text(command)]).optional
                    Node.null("end").optional
                }
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Node.frames("view")
                }
            }
            let pipeline = try await MediaPipeline(graph, seen: seen)
            let starting = Task { try await pipeline.start() }
            await eventually("three tries: \(seen.story)") { seen.warnings("feed.memory").count >= 3 }
            let all = seen.events.all.compactMap { if case .warning(_, let words) = $0 { words } else { nil } }
            let end = "The graph ends the program /usr/bin/python3 and restarts it. [feed.memory]"
            #expect(all.allSatisfy { $0.hasSuffix(end) }, "\(all)")
            await pipeline.stop()
            _ = try? await starting.value
        }

        @Test("A program that sends nothing fails the start of a node that ends with it, with its last output")
        func silent() async throws {
            let error = await failure(
                of: fed(
                    clock([
                        "command":
                            "/usr/bin/python3 -c 'import sys, time; print(\"no camera\", file=sys.stderr); time.sleep(100)'",
                        "timeout": 60, "away": "end",
                    ])))
            #expect(error?.code == "process.silent")
            #expect(error?.message.contains("its last output was \"no camera\"") == true)
        }

        @Test("An invalid command, or one that names no program, is refused in the plan")
        func commands() async {
            #expect(await failure(of: fed(clock(["command": "no-such-program -x"])))?.code == "process.not-found")
            #expect(await failure(of: fed(clock(["command": "python3 'x"])))?.code == "graph.invalid")
            #expect(await failure(of: fed(clock(["command": " "])))?.code == "graph.setting-unusable")
        }

        @Test("A program's output is passed on with the node's name, limited in number")
        func words() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write(
                "frame(0)\nprint('\\x1b[31mhello', flush=True)\nfor n in range(10000): print(n, "
                    + "file=sys.stderr)\ndrain()",
                into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(fed(clock(["command": .text(command)])), seen: seen)
            try await pipeline.start()
            func said() -> [String] {
                seen.events.all.compactMap { if case .warning("process", let text) = $0 { text } else { nil } }
            }
            await eventually(within: 20, "its words") { said().count >= 20 }
            #expect(said().contains("[31mhello"))
            await pipeline.stop()
            #expect(said().count < 60)
        }

        @Test("Without a restart, a normal end of the program ends the stream")
        func lastEnd() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write("frame(0)\ngraph.send(struct.pack('<I', 6) + b'done')", into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                fed(clock(["command": .text(command), "restart": false])), seen: seen)
            try await pipeline.start()
            await eventually(within: 20, "the end: \(seen.story)") { pipeline.state == .ended }
            #expect(seen.pictures.count == 1 && seen.failures.isEmpty)
            await pipeline.stop()
        }

        @Test("Without a restart, a failure of the program fails the graph")
        func badEnd() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write("frame(0); time.sleep(0.5); sys.exit('broken')", into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                fed(clock(["command": .text(command), "restart": false])), seen: seen)
            try await pipeline.start()
            await eventually(within: 20, "the failure: \(seen.story)") { seen.failures.first?.code == "process.ended" }
            #expect(seen.failures.first?.message.contains("status 1; its last output was \"broken\"") == true)
            await pipeline.stop()
        }

        @Test("Frames sent before a program's end are received, even if others hold its socket")
        func lastPictures() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write(
                """
                memory = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
                os.ftruncate(memory, 40 * size)
                fcntl.fcntl(memory, 1033, 2)
                hello(slots=40, descriptors=[memory])
                while graph.recv(512)[0] != 0x11: pass
                for slot in range(40): frame(slot)
                if os.fork() == 0:
                    os.setsid()
                    while graph.recv(512): pass
                """, hello: "True", into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                fed(clock(["command": .text(command), "fps": 10, "restart": false])), seen: seen)
            let control = try #require(pipeline.frameFeed("process"))
            try await pipeline.start()
            await eventually(within: 30, "the end: \(seen.story)") { pipeline.state == .ended }
            #expect(control.state.received == 40)
            await pipeline.stop()
        }

        @Test("A program's last output is reported, however long it is")
        func lastWords() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write(
                "frame(0); time.sleep(0.5); os.write(2, b'more\\n' * 12000 + b'no camera'); os._exit(3)", into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                fed(clock(["command": .text(command), "restart": false])), seen: seen)
            try await pipeline.start()
            await eventually(within: 20, "the failure: \(seen.story)") { seen.failures.first?.code == "process.ended" }
            #expect(seen.failures.first?.message.contains("status 3; its last output was \"no camera\"") == true)
            await pipeline.stop()
        }

        @Test("A node that stops during a restart delay ends too")
        func stoppedBetween() async throws {
            let folder = TemporaryFolder()
            let seen = Seen()
            let command = Feeder.write("frame(0); time.sleep(0.1); sys.exit(1)", into: folder)
            let pipeline = try await MediaPipeline(fed(clock(["command": .text(command)])), seen: seen)
            try await pipeline.start()
            let control = try #require(pipeline.frameFeed("process"))
            await eventually(within: 30, "three ends") { seen.warnings("process.ended").count >= 3 }
            control.stop()
            await eventually(within: 20, "the end: \(seen.story)") { pipeline.state == .ended }
            await pipeline.stop()
        }

        @Test("A paused node requests nothing of the program, and a stopped one ends it")
        func paused() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(fed(clock()), seen: seen)
            try await pipeline.start()
            let control = try #require(pipeline.frameFeed("process"))
            control.pause()
            await eventually("the pause") { control.state.isHeldBack && control.state.held == 0 }
            control.resume()
            let before = seen.pictures.count
            await eventually("frames again") { seen.pictures.count >= before + 5 }
            control.stop()
            await eventually(within: 20, "the end") { pipeline.state == .ended }
            #expect(seen.warnings("process.ended").isEmpty)
            await pipeline.stop()
            #expect(Self.children(of: getpid()).isEmpty)
        }

        @Test("Raw frames of another size are scaled if the node allows it")
        func scaled() async throws {
            let folder = TemporaryFolder()
            let command = Feeder.write(
                """
                hello(width=160, height=120, size=160 * 120 * 3 // 2)
                while graph.recv(512)[0] != 0x11: pass
                frame(0, length=160 * 120 * 3 // 2)
                graph.recv(512)
                hello(width=64, height=64, size=64 * 64 * 3 // 2)
                for slot in range(4): frame(slot, length=64 * 64 * 3 // 2)
                drain()
                """, hello: "True", into: folder)
            let seen = Seen()
            let pipeline = try await MediaPipeline(fed(clock(["command": .text(command), "scale": true])), seen: seen)
            try await pipeline.start()
            await eventually(within: 20, "both sizes: \(seen.story)") { seen.pictures.count >= 3 }
            #expect(seen.pictures.all.allSatisfy { $0.width == 320 && $0.height == 240 })
            #expect(seen.deviceEvents.isEmpty)
            await pipeline.stop()
        }
    }
}
