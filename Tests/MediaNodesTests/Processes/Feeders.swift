import FrameSocket
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

/// Python programs that speak the frame protocol, correctly and incorrectly.
enum Feeder {
    static let example = Checkout.path("examples/frame-socket/clock.py")

    /// A program with an accepted hello of four slots. `program` continues, with `graph`, `memory`, `size`, `width` and
    /// `height`, and `frame(slot)`, which announces a frame.
    static func write(_ program: String, hello: String = "None", into folder: TemporaryFolder) -> String {
        let text = """
            import ctypes, fcntl, os, signal, socket, struct, sys, time
            name = os.environ["CONNECTLIVE_FRAME_SOCKET"]
            graph = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=int(name) if name.isdigit() else None)
            if not name.isdigit(): graph.connect(name)
            kind, magic, version, code, width, height, rate, per = struct.unpack("<I4sI4sIIII", graph.recv(512)[:32])
            size = width * height * 3 // 2
            memory = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(memory, 4 * size)
            fcntl.fcntl(memory, 1033, 2)
            def hello(code=code, width=width, height=height, slots=4, size=size, descriptors=[memory], version=1):
                text = struct.pack("<I4sI4sIIII", 1, b"CLFS", version, code, width, height, slots, size) + b"test"
                socket.send_fds(graph, [text], descriptors)
            def frame(slot, offset=0, length=size, stated=0, planes=()):
                graph.send(struct.pack("<IIQIII", 2, slot, stated, 1, offset, length)
                    + b"".join(struct.pack("<II", *plane) for plane in planes))
            def drain():
                while True:
                    message = graph.recv(512)
                    if not message: sys.exit(0)
                    if message[0] == 0x18: sys.exit("refused: " + message[4:].decode())
            own = \(hello)
            if own is None:
                hello()
                while graph.recv(512)[0] != 0x11: pass

            """
        let path = "\(folder.path)/feeder.py"
        writeFile(Array((text + program + "\n").utf8), to: path)
        return "/usr/bin/python3 '\(path)'"
    }
}

extension Seen {
    /// The warnings and the causes of losses with this code.
    func warnings(_ code: String) -> [String] {
        events.all.compactMap { event in
            switch event {
            case .warning(_, let message) where message.hasSuffix("[\(code)]"): message
            case .deviceWaiting(_, let cause) where cause.code == code: "\(cause)"
            case .deviceLost(_, let cause) where cause.code == code: "\(cause)"
            default: nil
            }
        }
    }

    /// All events, for the message of a failed test.
    var story: String { "\(events.all)" }

    var barCodes: [UInt32] { pictures.all.compactMap(\.barCode) }
}

/// The feed and an independent branch: a graph of two sources, watched at "view" and counted at "beside".
func fed(_ node: Node) -> MediaGraph {
    MediaGraph {
        Chain {
            node
            Node.frames("view")
        }
    }
}

/// Runs a node whose program makes a mistake. Expects the mistake's code, and that the branch beside it loses nothing.
func expectHarmless(_ node: Node, toldAs code: String, within seconds: Double) async throws {
    let graph = MediaGraph {
        Chain {
            Node.testPattern("pattern", width: 320, height: 240)
            Node.frames("view")
        }
        Chain {
            // Without any frame, the start would fail, which another test checks.
            node.optional
            Node.null("end").optional
        }
    }
    let seen = Seen()
    let pipeline = try await MediaPipeline(graph, seen: seen)
    let starting = Task { try await pipeline.start() }
    await eventually(within: seconds, "\(code): \(seen.story)") { !seen.warnings(code).isEmpty }
    let before = seen.pictures.count
    await eventually("the branch beside it goes on") { seen.pictures.count >= before + 30 }
    let codes = seen.barCodes
    #expect(zip(codes, codes.dropFirst()).allSatisfy { $1 == $0 + 1 }, "without a loss")
    #expect(seen.failures.isEmpty)
    await pipeline.stop()
    _ = try? await starting.value
    #expect(MediaNodesTests.ProcessTests.children(of: getpid()).isEmpty)
}
