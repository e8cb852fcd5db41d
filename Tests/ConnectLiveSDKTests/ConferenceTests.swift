import ConnectLiveSDK
import Foundation
import MediaGraph
import MediaNodes
import RoomServer
import Synchronization
import TestFixtures
import TestSupport
import Testing

extension SDKTests {
    /// examples/conference, used as people use it: by keys, and by what its screens show.
    @Suite(.timeLimit(.minutes(2)))
    struct Conference {
        private let runtime = TemporaryFolder()

        private func environment(_ stage: Stage) -> [String: String] {
            [
                "CONNECTLIVE_SERVER": stage.server.url, "CONNECTLIVE_SERVICE_ID": stage.key.id,
                "CONNECTLIVE_SERVICE_SECRET": stage.key.secret, "XDG_RUNTIME_DIR": runtime.path,
            ]
        }

        private func person(_ name: String, _ environment: [String: String], columns: Int = 80, rows: Int = 24) throws
            -> TerminalProgram
        {
            try TerminalProgram(
                "conference", ["kitchen", name, "--test-pattern"], environment: environment, columns: columns,
                rows: rows)
        }

        private func waitFor(_ what: String, _ program: TerminalProgram? = nil, _ condition: () -> Bool) async throws {
            let isInTime = await eventually(within: 20, condition)
            try #require(isInTime, "not in time: \(what)\(program.map { ", on this screen:\n\($0.text)" } ?? "")")
        }

        @Test func `two people in terminals see and hear each other, chat, and leave`() async throws {
            try await onStage(isSignedIn: false) { stage in
                let ann = try person("Ann", environment(stage))
                let ben = try person("Ben", environment(stage), columns: 100, rows: 30)
                try await waitFor("previews") {
                    ann.showsBars(above: "Ann (you)") && ben.showsBars(above: "Ben (you)")
                }
                #expect(ann.shows("Room: kitchen") && ann.shows("Name: Ann") && ann.shows("Camera: test pattern"))
                ann.type("\r")
                ben.type("\r")
                try await waitFor("each other's video and audio") {
                    ann.showsBars(above: "Ben · speaking") && ben.showsBars(above: "Ann · speaking")
                }
                ann.type("tgood morning, 좋은 아침\r")
                ben.type("t\u{1b}tHi\u{7f}ello\r")
                try await waitFor("chat lines") { ben.shows("Ann: good morning, 좋은 아침") && ann.shows("Ben: Hello") }
                ben.type("m")
                try await waitFor("the muted microphone") { ann.shows("Ben · muted") && ben.shows("Ben (you) · muted") }
                ben.type("c")
                try await waitFor("the camera that is off") { ann.shows("no video") && ben.shows("no video") }
                ben.type("cm")
                try await waitFor("the camera and the microphone again") { ann.showsBars(above: "Ben · speaking") }
                ann.resize(columns: 60, rows: 16)
                try await waitFor("the smaller frames") { ann.showsBars(above: "Ben · speaking") }
                ben.type("q")
                try await waitFor("the end for Ben") { ann.shows("Ben has left.") && ben.shows("Lobby") }
                #expect(!ann.shows("Ben · "))
                ben.type("\u{1b}")
                ann.type("\u{3}")
                try await waitFor("the ends of both programs") { ann.exitCode != nil && ben.exitCode != nil }
                #expect(ann.exitCode == 0 && ben.exitCode == 0)
                try await waitFor("the terminals of before") { ann.isRestored && ben.isRestored }
            }
        }

        @Test func `a room that cannot be entered is explained in the lobby, and a signal ends the program in order`()
            async throws
        {
            try await onStage(isSignedIn: false) { stage in
                let ann = try person("Ann", environment(stage))
                try await waitFor("the lobby") { ann.shows("Room: kitchen") }
                ann.type("\u{7f}\u{7f} no name\r")
                try await waitFor("the reason") { ann.shows("Lobby") && ann.shows("contains a space") }
                ann.terminate()
                try await waitFor("the end") { ann.exitCode != nil && ann.isRestored }
                #expect(ann.exitCode == 0)
            }
        }

        /// A machine with a camera shows it instead.
        @Test(.enabled(if: Devices.cameras().isEmpty))
        func `a machine without a camera takes part`() async throws {
            try await onStage { stage in
                let host = Client()
                _ = try await host.join("kitchen")
                let ann = try TerminalProgram("conference", ["kitchen", "Ann"], environment: environment(stage))
                try await waitFor("the missing camera") { ann.shows("Camera: none found: you join without one") }
                ann.type("\r")
                try await waitFor("the room") { ann.shows("q leave") }
                try await host.listener.wait(for: "entered") { if case .entered = $0 { true } else { nil } }
                ann.type("thello\r")
                let text = try await host.listener.wait(for: "a line") {
                    if case .userMessage(_, let text, _) = $0 { text } else { nil }
                }
                #expect(text == "hello")
                ann.type("c")
                try await waitFor("the reason why not") { ann.shows("There is no camera.") }
                ann.type("\u{3}")
                try await waitFor("the end") { ann.exitCode == 0 }
                try await host.leave()
            }
        }

        /// A microphone that hears what is played into the sink "microphone".
        private func plug(_ name: String, into environment: [String: String]) throws {
            let program = Process()
            program.executableURL = URL(fileURLWithPath: "/usr/bin/pactl")
            program.arguments = [
                "load-module", "module-remap-source", "source_name=\(name)", "master=microphone.monitor",
                "source_properties=device.description=\(name)",
            ]
            program.environment = environment
            let outcome = try program.runToEnd(within: 20)
            try #require(outcome.status == 0, "\(outcome.output)")
        }

        @Test(.enabled(if: Devices.cameras().isEmpty))
        func `keys choose among microphones, in the lobby and during the call`() async throws {
            let server = try Fixture.soundServer("--microphone")
            for name in ["left", "right"] { try plug(name, into: server.answer.environment) }
            try await onStage { stage in
                let host = Client()
                _ = try await host.join("kitchen")
                let environment = server.answer.environment.merging(environment(stage)) { own, _ in own }
                let ann = try TerminalProgram("conference", ["kitchen", "Ann"], environment: environment)
                try await waitFor("the first of two microphones", ann) { ann.shows("Microphone: ‹ left ›") }
                // Down to the microphone.
                ann.type("\u{1b}[B\u{1b}[B\u{1b}[B\u{1b}[C")
                try await waitFor("the other one") {
                    ann.shows("Microphone: ‹ right ›") && ann.shows("Now: right")
                }
                ann.type("\u{1b}[C\u{1b}[C\u{1b}[D")
                try await waitFor("the third key's choice") { ann.shows("Now: left") }
                ann.type("\r")
                try await host.listener.wait(for: "audio") { if case .heard = $0 { true } else { nil } }
                ann.type("n")
                try await waitFor("the answer without cameras") { ann.shows("There is no other device.") }
                ann.type("\u{3}")
                try await waitFor("the end") { ann.exitCode == 0 }
                try await host.leave()
            }
        }

        /// Ann's screen is the display with Ben's window, so the host sees Ben's window in it.
        @Test func `the window shows the call, and a shared screen shows the window`() async throws {
            let display = try Fixture.display("--empty", "--size", "1100x700")
            try await onStage { stage in
                let environment = environment(stage).merging([
                    "DISPLAY": display.answer.display, "SDL_VIDEODRIVER": "x11", "SDL_RENDER_DRIVER": "software",
                ]) { $1 }
                let host = Client()
                _ = try await host.join("kitchen")
                let ann = try person("Ann", environment)
                let ben = try TerminalProgram(
                    "conference", ["kitchen", "Ben", "--window", "--test-pattern"], environment: environment)
                try await waitFor("the lobby") { ann.shows("Name: Ann") }
                ann.type("\r")
                try await waitFor("Ben, who presses Enter in the window") {
                    display.tell("key Return")
                    return ann.showsBars(above: "Ben · speaking")
                }
                // Enter also begins a chat line, and Escape ends it.
                for key in ["Escape", "t", "h", "i", "Return", "m"] { display.tell("key \(key)") }
                try await waitFor("what Ben types and does") { ann.shows("Ben: hi") && ann.shows("Ben · muted") }
                ann.type("s")
                let screen = try await host.listener.wait(for: "the shared screen", within: 20) { event in
                    if case .video(let video) = event, video.extraValue == "screen" { video } else { nil }
                }
                let seen = Mutex(Set<[Int]>())
                let view = FrameView { frame in seen.withLock { $0.formUnion(frame.boldColours) } }
                screen.attach(view)
                try await host.room.subscribe(videoId: screen.id).get()
                // Each bar and the green caption of Ann, who speaks.
                try await waitFor("Ben's window in Ann's screen") {
                    seen.withLock { $0.isSuperset(of: FrameView.Bars.hues) }
                }
                ann.type("s")
                try await host.listener.wait(for: "the end of the share") {
                    if case .videoGone(let video) = $0, video.id == screen.id { true } else { nil }
                }
                display.tell("key q")
                try await waitFor("Ben's leave") { ann.shows("Ben has left.") }
                display.tell("key Escape")
                ann.type("\u{3}")
                try await waitFor("the ends of both programs") { ann.exitCode == 0 && ben.exitCode == 0 }
                try await host.leave()
            }
        }
    }
}

extension FrameView {
    fileprivate enum Bars {
        /// Which of red, green and blue are bright: yellow, cyan, green, magenta, red and blue.
        static let hues: Set<[Int]> = [[1, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1]]
    }
}

extension VideoFrame {
    /// Which of red, green and blue are bright in pixels without grey, at some points of the frame.
    fileprivate var boldColours: Set<[Int]> {
        withPlane(.luma) { luma, lumaStride in
            withPlane(.chromaBlue) { blue, chromaStride in
                withPlane(.chromaRed) { red, _ in
                    var colours: Set<[Int]> = []
                    for y in stride(from: 0, to: height, by: 8) {
                        for x in stride(from: 0, to: width, by: 8) {
                            let at = y / 2 * chromaStride + x / 2
                            let bright = Int(luma.unsafeLoad(fromByteOffset: y * lumaStride + x, as: UInt8.self)) - 16
                            let u = Int(blue.unsafeLoad(fromByteOffset: at, as: UInt8.self)) - 128
                            let v = Int(red.unsafeLoad(fromByteOffset: at, as: UInt8.self)) - 128
                            guard max(abs(u), abs(v)) > 50 else { continue }
                            let rgb = [bright + 3 * v / 2, bright - u / 3 - 4 * v / 5, bright + 2 * u]
                            colours.insert(rgb.map { $0 > 90 ? 1 : 0 })
                        }
                    }
                    return colours
                }
            }
        }
    }
}
