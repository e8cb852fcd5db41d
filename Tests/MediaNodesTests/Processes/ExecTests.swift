import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    /// Programs that write frames to their standard output.
    @Suite struct ExecTests {
        private func exec(_ command: String, _ more: [String: SettingValue] = [:]) -> Node {
            Node(
                "exec",
                settings: ["command": .text(command), "width": 320, "height": 240, "fps": 60].merging(more) { $1 })
        }

        /// The command that writes gst-launch's own test pattern.
        private func pattern(_ encoder: String) -> String {
            "gst-launch-1.0 -q videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 "
                + "! \(encoder) ! fdsink"
        }

        @Test(
            "Frames that another program encodes or draws are rendered",
            arguments: [
                ("I420", "identity"), ("BGRx", "videoconvert ! video/x-raw,format=BGRx"), ("mjpeg", "jpegenc"),
                (
                    "h264",
                    "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! video/x-h264,stream-format=byte-stream"
                ),
            ])
        func formats(format: String, encoder: String) async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(fed(exec(pattern(encoder), ["format": .text(format)])), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "frames: \(seen.story)") { seen.pictures.count >= 30 }
            await pipeline.stop()
            let times = seen.pictures.all.map(\.time)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
            #expect(seen.pictures.all.allSatisfy { $0.width == 320 && $0.height == 240 })
            #expect(seen.failures.isEmpty)
            #expect(MediaNodesTests.ProcessTests.children(of: getpid()).isEmpty)
        }

        /// Writes frames with bar codes to files. A program then writes the files one after the other.
        @Test("Each written frame arrives once and in order", arguments: ["mjpeg", "h264", "I420"])
        func order(format: String) async throws {
            let folder = TemporaryFolder()
            let count = 20
            let encoder: Node? =
                switch format {
                case "mjpeg": .element("jpegenc")
                case "h264":
                    .element("x264enc", ["speed-preset": "ultrafast", "tune": "zerolatency", "key-int-max": 5])
                default: nil
                }
            let sink = Node.element("filesink", ["location": .text(folder.path + "/pictures")])
            let recording = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern(width: 320, height: 240, frames: count)
                        for node in [encoder].compactMap({ $0 }) { node }
                        if format == "h264" {
                            Node.element("capsfilter", ["caps": "video/x-h264,stream-format=byte-stream"])
                        }
                        sink
                    }
                })
            try await recording.start()
            await eventually("the recording") { recording.state == .ended }
            await recording.stop()
            // In small pieces, with pauses anywhere within a frame. Raw frames and JPEG wait until those two before them have
            // been seen, because the node drops frames of a program that is ahead.
            let program = """
                import os, sys, time
                data = open('\(folder.path)/pictures', 'rb').read()
                step = max(len(data) // 100, 1)
                for at in range(0, len(data), step):
                    while '\(format)' != 'h264' and os.path.getsize('\(folder.path)/seen') < at * \(count) // len(data) - 2:
                        time.sleep(0.005)
                    sys.stdout.buffer.write(data[at:at + step]); sys.stdout.buffer.flush(); time.sleep(0.01)
                """
            writeFile(Array(program.utf8), to: folder.path + "/write.py")
            writeFile([], to: folder.path + "/seen")
            let seen = Seen()
            let node = exec(
                "python3 '\(folder.path)/write.py'", ["format": .text(format), "restart": false, "timeout": 60])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "the end: \(seen.story)") {
                writeFile([UInt8](repeating: 0, count: seen.pictures.count), to: folder.path + "/seen")
                return pipeline.state == .ended
            }
            await pipeline.stop()
            #expect(seen.barCodes == Array(0..<UInt32(count)))
        }

        @Test(
            "Frames of any size are encoded, though GStreamer expects other rows",
            arguments: [(854, 480), (426, 240), (641, 479), (640, 361)])
        func sizes(width: Int, height: Int) async throws {
            let chroma = (width + 1) / 2 * ((height + 1) / 2) * 2
            let command =
                "python3 -c \"import sys; frame = bytes([150]) * \(width * height) + bytes([128]) * \(chroma)\nwhile True: "
                + "sys.stdout.buffer.write(frame)\""
            let seen = Seen()
            let node = exec(command, ["width": .integer(width), "height": .integer(height)])
            let graph = MediaGraph {
                node
                Chain(from: "exec", port: "video") {
                    Node.videoEncoder("encoder", codec: .vp8)
                    Node.null()
                }
                Chain(from: "exec", port: "video") { Node.frames("view") }
            }
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "frames: \(seen.story)") {
                seen.pictures.count >= 5 && pipeline.statistics.encoders["encoder"]?.encoded ?? 0 >= 5
            }
            await pipeline.stop()
            #expect(seen.pictures.all.allSatisfy { $0.brightness == 150 && $0.width == width && $0.height == height })
        }

        @Test("A program that ends or writes invalid output is restarted")
        func again() async throws {
            let seen = Seen()
            let command = "python3 -c \"import sys; sys.stdout.buffer.write(bytes([150]) * (320 * 240 * 3 // 2))\""
            let pipeline = try await MediaPipeline(fed(exec(command)), seen: seen)
            try await pipeline.start()
            // Stand-ins count as frames too.
            await eventually(within: 30, "three runs: \(seen.story)") {
                seen.pictures.count >= 3 && seen.warnings("process.ended").count >= 2
            }
            await pipeline.stop()
            #expect(Set(seen.pictures.all.map(\.brightness)) == [150])
        }

        @Test("Output written before a program's end is read, even if others hold its pipe")
        func lastPictures() async throws {
            let folder = TemporaryFolder()
            let program = """
                import os, sys, time
                for n in range(30): sys.stdout.buffer.write(bytes([20 + 5 * n]) * (320 * 240 * 3 // 2))
                sys.stdout.flush()
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(4)
                """
            writeFile(Array(program.utf8), to: folder.path + "/write.py")
            let seen = Seen()
            let node = exec("python3 '\(folder.path)/write.py'", ["fps": 10, "restart": false])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "the end: \(seen.story)") { pipeline.state == .ended }
            await pipeline.stop()
            let shades = seen.pictures.all.map(\.brightness)
            #expect(shades.last == 165 && zip(shades, shades.dropFirst()).allSatisfy { $0 < $1 }, "\(shades)")
        }

        @Test func `a program that writes frames of another size is told which size they might have`() async throws {
            let frames = "sys.stdout.buffer.write(bytes(640 * 480 * 3 // 2) * 2)"
            let seen = Seen()
            let node = exec(
                "python3 -c \"import sys; \(frames)\"",
                ["restart": false, "width": 640, "height": 360])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "the end: \(seen.story)") { pipeline.state == .ended }
            await pipeline.stop()
            let warnings = seen.warnings("process.bad-output")
            #expect(warnings.count == 1, "\(seen.story)")
            #expect(
                warnings.first?.contains(
                    "The program python3 does not write I420 640x360 as stated: its 921600 bytes end 230400 bytes into a "
                        + "frame of 345600; they would be ") == true, "\(warnings)")
            #expect(warnings.first?.contains("2 frames of I420 640x480") == true, "\(warnings)")
        }

        @Test func `a live program with larger frames than stated is too fast, and the message names their size`()
            async throws
        {
            let seen = Seen()
            let command = pattern("identity").replacing("width=320,height=240", with: "width=640,height=480")
            let pipeline = try await MediaPipeline(fed(exec(command, ["fps": 30])), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "too fast: \(seen.story)") { !seen.warnings("feed.too-fast").isEmpty }
            await pipeline.stop()
            #expect(seen.warnings("feed.too-fast").first?.contains("perhaps I420 640x480") == true, "\(seen.story)")
        }

        @Test func `a live program with smaller frames than stated is told once which size they might have`()
            async throws
        {
            let seen = Seen()
            let node = exec(pattern("identity"), ["fps": 30, "width": 640, "height": 480])
            let pipeline = try await MediaPipeline(fed(node), seen: seen)
            try await pipeline.start()
            await eventually(within: 30, "the warning: \(seen.story)") { !seen.warnings("process.bad-output").isEmpty }
            let count = seen.pictures.count
            await eventually(within: 30, "more frames") { seen.pictures.count > count + 5 }
            await pipeline.stop()
            let warnings = seen.warnings("process.bad-output")
            #expect(warnings.count == 1, "\(warnings)")
            #expect(
                warnings.first?.contains(
                    "it writes 115200 bytes at a time, and a frame has 460800; they would be I420 320x240") == true,
                "\(warnings)")
        }

        @Test("Programs that stop together share their time limit, and may write their remaining output")
        func leaving() async throws {
            let folder = TemporaryFolder()
            let program = """
                import os, signal, sys, time
                own, other = sys.argv[1:]
                def leave(*_):
                    open(own + ".asked", "w").close()
                    os.write(1, bytes(3 << 20))
                    os.write(2, bytes(200000))
                    while not os.path.exists(other + ".asked"): time.sleep(0.01)
                    open(own + ".left", "w").close()
                    os._exit(0)
                signal.signal(signal.SIGTERM, leave)
                while True:
                    os.write(1, bytes([150]) * (320 * 240 * 3 // 2))
                    time.sleep(0.05)
                """
            writeFile(Array(program.utf8), to: folder.path + "/leave.py")
            func leaving(_ own: String, _ other: String) -> Node {
                var node = exec("python3 '\(folder.path)/leave.py' '\(folder.path)/\(own)' '\(folder.path)/\(other)'")
                node.name = own
                return node
            }
            let graph = MediaGraph {
                Chain {
                    leaving("one", "two")
                    Node.frames("view")
                }
                Chain {
                    leaving("two", "one")
                    Node.null("end")
                }
            }
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually(within: 20, "pictures") { seen.pictures.count >= 3 }
            await pipeline.stop()
            #expect(Set(fileNames(in: folder.path)).isSuperset(of: ["one.left", "two.left"]), "neither was killed")
        }

        static let wrongs: [(what: String, code: String, format: String, program: String)] = [
            (
                "no JPEG at all", "process.bad-output", "mjpeg",
                "while True: sys.stdout.buffer.write(bytes(65536)); time.sleep(0.01)"
            ),
            ("text", "process.bad-output", "mjpeg", "print('total 0')"),
            (
                "B-frames", "process.bad-output", "h264",
                "sys.stdout.buffer.write(b'\\0\\0\\0\\1\\x01\\xa0\\x04\\x04' * 9); sys.stdout.flush(); time.sleep(100)"
            ),
            (
                "a JPEG without an end", "process.bad-output", "mjpeg",
                "sys.stdout.buffer.write(b'\\xff\\xd8\\xff\\xda\\0\\2' + bytes(1 << 25)); time.sleep(100)"
            ),
            (
                "a broken JPEG", "process.bad-output", "mjpeg",
                "sys.stdout.buffer.write(b'\\xff\\xd8' + bytes(1000)); sys.stdout.flush(); time.sleep(100)"
            ),
            (
                "another size", "process.bad-output", "mjpeg",
                "sys.stdout.buffer.write(b'\\xff\\xd8\\xff\\xc0\\0\\x0b\\x08\\0\\x10\\0\\x10\\1\\1\\x11\\0\\xff\\xd9' * 9); sys.stdout.flush(); time.sleep(100)"
            ),
            ("no H.264", "process.bad-output", "h264", "sys.stdout.buffer.write(b'x' * (1 << 25)); time.sleep(100)"),
            ("nothing", "process.silent", "I420", "time.sleep(100)"),
            ("too much", "feed.too-fast", "I420", "while True: sys.stdout.buffer.write(bytes(320 * 240 * 3 // 2))"),
            (
                "half a frame", "process.silent", "I420",
                "sys.stdout.buffer.write(bytes(1000)); sys.stdout.flush(); time.sleep(100)"
            ),
        ]

        @Test(
            "Invalid output of a program is reported with a code, and harms nothing else",
            arguments: 0..<wrongs.count)
        func wrong(index: Int) async throws {
            let wrong = Self.wrongs[index]
            let folder = TemporaryFolder()
            writeFile(Array("import sys, time\n\(wrong.program)\n".utf8), to: folder.path + "/wrong.py")
            // A program is also silent while it writes megabytes without a frame. The first message must not depend on
            // how fast they are read.
            let timeout = wrong.code == "process.silent" ? 1 : 60
            let program = exec(
                "python3 '\(folder.path)/wrong.py'", ["format": .text(wrong.format), "timeout": .integer(timeout)])
            try await expectHarmless(program, toldAs: wrong.code, within: 60)
        }
    }
}
