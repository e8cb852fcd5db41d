import GStreamerKit
import Glibc
import MediaGraph
@testable import MediaNodes
import Synchronization
import Testing
import TestSupport

/// An X server without a screen, on a free display number.
final class VirtualDisplay {
    private static let server = "/usr/bin/Xvfb"

    let number: Int
    private let process: pid_t

    init?(width: Int = 1280, height: Int = 720) {
        var ends: [Int32] = [0, 0]
        guard access(Self.server, X_OK) == 0, pipe(&ends) == 0 else { return nil }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // The server picks a free number and prints it to its standard output.
        // -noreset: otherwise the server restarts when its last client leaves, and breaks new connections meanwhile.
        let arguments = [
            Self.server, "-displayfd", "1", "-screen", "0", "\(width)x\(height)x24", "-nolisten", "tcp", "-noreset",
        ]
        var strings: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        // Threads of Swift's pool block all signals. A child would inherit that and never get SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var child: pid_t = 0
        let failure = posix_spawn(&child, Self.server, &actions, &attributes, &strings, environ)
        close(ends[1])
        guard failure == 0 else { return nil }
        process = child
        // The number and the end of its line may arrive separately.
        var digits: [UInt8] = []
        var character: UInt8 = 0
        while read(ends[0], &character, 1) == 1, character != 10 { digits.append(character) }
        let text = String(decoding: digits, as: UTF8.self)
        number = Int(text) ?? -1
        setenv("DISPLAY", ":\(number)", 1)
        unsetenv("WAYLAND_DISPLAY")
    }

    /// The current contents of the screen.
    func picture() async throws -> VideoFrame? {
        let pipeline = Pipeline { _ in }
        let source = try Element("ximagesrc", ["num-buffers": 1, "use-damage": false])
        let convert = try Element("videoconvert")
        let filter = try Element.filter("video/x-raw,format=I420")
        let sink = try Element("fakesink", ["async": false])
        for element in [source, convert, filter, sink] { pipeline.add(element) }
        try source.link(convert)
        try convert.link(filter)
        try filter.link(sink)
        let box = Screenshot()
        sink.sink.onBuffer { buffer in
            if let format = buffer.videoFormat {
                box.frame.withLock {
                    $0 = VideoFrame(
                        width: format.width, height: format.height, captureTime: buffer.time, rtpTimestamp: nil,
                        handedOver: buffer.time, storage: buffer.keep(as: format))
                }
            }
            return .pass
        }
        #expect(pipeline.play())
        await eventually("a frame of the screen") { box.frame.withLock { $0 != nil } }
        pipeline.stop()
        return box.frame.withLock { $0 }
    }

    deinit {
        unsetenv("DISPLAY")
        kill(process, SIGTERM)
        waitpid(process, nil, 0)
    }
}

final class Screenshot: Sendable {
    let frame = Mutex<VideoFrame?>(nil)
}

extension VideoFrame {
    /// Mean brightness of a part of the frame.
    func brightness(x: Range<Int>, y: Range<Int>) -> Int {
        withPlane(.luma) { bytes, stride in
            var sum = 0
            for row in y {
                for column in x {
                    sum += Int(bytes.unsafeLoad(fromByteOffset: row * stride + column, as: UInt8.self))
                }
            }
            return sum / max(x.count * y.count, 1)
        }
    }
}

extension MediaNodesTests {
    @Suite(.serialized) struct WindowTests {
        private func plain(_ luma: UInt8, width: Int = 320, height: Int = 240, blackRows: Int = 0) -> VideoFrame {
            let chroma = [UInt8](repeating: 128, count: (width + 1) / 2 * ((height + 1) / 2))
            let now = GStreamer.now
            return VideoFrame(
                width: width, height: height, captureTime: now, rtpTimestamp: nil, handedOver: now,
                storage: VideoBuffer(
                    width: width, height: height,
                    luma: [UInt8](repeating: 16, count: width * blackRows)
                        + [UInt8](repeating: luma, count: width * (height - blackRows)),
                    chromaBlue: chroma, chromaRed: chroma))
        }

        @Test("Without a display, a window reports that")
        func noDisplay() {
            unsetenv("DISPLAY")
            unsetenv("WAYLAND_DISPLAY")
            let error = #expect(throws: MediaError.self) { try TiledWindow(title: "Nothing") }
            #expect(error?.code == "window.unavailable")
            #expect(!TiledWindow.isPossible)
            setenv("DISPLAY", ":987", 1)
            #expect(throws: MediaError.self) { try TiledWindow(title: "Nothing") }
            unsetenv("DISPLAY")
        }

        @Test("A window shows the frames of a graph")
        func window() async throws {
            let display = try #require(VirtualDisplay(width: 640, height: 480))
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 640, height: 480)
                        Node("window", settings: ["title": "Test"])
                    }
                })
            try await pipeline.start()
            await eventually("ten frames") {
                (pipeline.statistics.videoRenderers["window"]?.framesRendered ?? 0) >= 10
            }
            let screen = try #require(try await display.picture())
            await pipeline.stop()
            // Grey, yellow, cyan: brighter than an empty screen.
            #expect(screen.brightness(x: 0..<600, y: 100..<200) > 60)
            keepPicture(screen, "window")
        }

        @Test("Tiles appear, show frames, and disappear")
        func tiles() async throws {
            let display = try #require(VirtualDisplay())
            let window = try TiledWindow(title: "Tiles")
            window.addTile("left")
            window.addTile("right")
            let white = plain(235)
            let grey = plain(120)
            await eventually("both tiles") {
                window.show(white, in: "left")
                window.show(grey, in: "right")
                window.show(white, in: "nobody")
                return window.picturesDrawn > 60
            }
            let both = try #require(try await display.picture())
            keepPicture(both, "tiles-two")
            #expect(both.brightness(x: 300..<340, y: 340..<380) > 200)
            let right = both.brightness(x: 940..<980, y: 340..<380)
            #expect(right > 90 && right < 150)
            window.removeTile("left")
            let drawn = window.picturesDrawn
            await eventually("one tile") {
                window.show(grey, in: "right")
                return window.picturesDrawn > drawn + 60
            }
            let one = try #require(try await display.picture())
            keepPicture(one, "tiles-one")
            #expect(one.brightness(x: 300..<340, y: 340..<380) < 150)
            await window.close()
            await window.close()
            window.show(grey, in: "right")
        }

        @Test func `a frame fills its tile with borders, without its edges, or out of shape`() async throws {
            let display = try #require(VirtualDisplay())
            let window = try TiledWindow(title: "Shapes", width: 640, height: 320)
            window.addTile("only")
            // A white square whose upper quarter is black, in a window of twice its width.
            let frame = plain(235, width: 160, height: 160, blackRows: 40)
            /// Whether the left edge and the upper edge of the window are white.
            func isWhite(_ fit: FrameFit) async throws -> [Bool] {
                window.setFit(fit, of: "only")
                let drawn = window.picturesDrawn
                await eventually("frames") {
                    window.show(frame, in: "only")
                    return window.picturesDrawn > drawn + 40
                }
                let screen = try #require(try await display.picture())
                keepPicture(screen, "fit-\(fit)")
                return [
                    screen.brightness(x: 40..<80, y: 150..<170), screen.brightness(x: 300..<340, y: 10..<30),
                ].map { $0 > 128 }
            }
            #expect(try await isWhite(.whole) == [false, false])
            #expect(try await isWhite(.filling) == [true, true])
            #expect(try await isWhite(.stretched) == [true, false])
            #expect(try await isWhite(.whole) == [false, false])
            await window.close()
        }

        @Test("Tiles that appear and disappear constantly neither block nor close the window")
        func restlessTiles() async throws {
            let display = try #require(VirtualDisplay())
            let closed = Collected<Bool>()
            let window = try TiledWindow(title: "Restless", width: 640, height: 360) { closed.append(true) }
            let grey = plain(120)
            window.addTile("stays")
            for round in 0..<30 {
                window.addTile("goes")
                let drawn = window.picturesDrawn
                await eventually("the window to be drawn, round \(round)") {
                    window.show(grey, in: "stays")
                    window.show(grey, in: "goes")
                    return window.picturesDrawn > drawn + 2
                }
                window.removeTile("goes")
            }
            #expect(closed.count == 0)
            await window.close()
            #expect(display.number >= 0)
        }

        @Test(
            "A snapshot writes PNG or JPEG by its extension, and refuses others",
            arguments: ["a.jpg", "a.JPEG", "a.PNG"])
        func imageKinds(name: String) async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/" + name
            func graph(_ path: String) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern(width: 160, height: 120, frames: 5)
                        Node.snapshot(path: path)
                    }
                }
            }
            let pipeline = try await MediaPipeline(graph(path))
            try await pipeline.start()
            await eventually("a file") { fileSize(path) > 100 }
            await pipeline.stop()
            let file = try #require(fopen(path, "rb"))
            defer { fclose(file) }
            let isPNG = name.hasSuffix("PNG")
            #expect((0..<2).map { _ in fgetc(file) } == (isPNG ? [0x89, 0x50] : [0xff, 0xd8]))
            #expect(graph(folder.path + "/a.bmp").validate(with: NodeRegistry.builtIn).count == 1)
        }

        @Test("A frame is written as PNG, by the program and by a node")
        func image() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/frame.png"
            let frames = Collected<VideoFrame>()
            var bindings = NodeBindings()
            bindings.frames["view"] = { if frames.count < 3 { frames.append($0) } }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern()
                        Tee { Node.snapshot(path: path, frame: 5) }
                        Node.frames("view")
                    }
                }, bindings: bindings)
            try await pipeline.start()
            await eventually("a file") { fileSize(path) > 500 }
            await eventually("frames") { frames.count == 3 }
            await pipeline.stop()
            let frame = try #require(frames.all.last)
            let bytes = try FrameImage.png(of: frame)
            #expect(bytes.prefix(8) == [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
            // Width and height are in the first chunk.
            #expect(bytes[16..<24] == [0, 0, 2, 128, 0, 0, 1, 224])
            try FrameImage.write(frame, to: path)
            #expect(fileSize(path) == bytes.count)
            let error = #expect(throws: MediaError.self) { try FrameImage.write(frame, to: "/nowhere/frame.png") }
            #expect(error?.code == "file.unwritable")
        }
    }
}

/// If `MEDIA_TEST_PICTURES` names a folder, the judged images are kept there for inspection.
func keepPicture(_ frame: VideoFrame, _ name: String) {
    guard let folder = getenv("MEDIA_TEST_PICTURES").map({ String(cString: $0) }) else { return }
    try? FrameImage.write(frame, to: folder + "/" + name + ".png")
}
