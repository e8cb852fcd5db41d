import GStreamerKit
import Glibc
import MediaGraph
import TestSupport
@testable import MediaNodes
import Testing

private func picture(width: Int, height: Int, luma: [UInt8], blue: UInt8 = 128, red: UInt8 = 128) -> VideoFrame {
    let chroma = (width + 1) / 2 * ((height + 1) / 2)
    return VideoFrame(
        width: width, height: height, captureTime: GStreamer.now, rtpTimestamp: nil, handedOver: GStreamer.now,
        storage: VideoBuffer(
            width: width, height: height, luma: luma, chromaBlue: [UInt8](repeating: blue, count: chroma),
            chromaRed: [UInt8](repeating: red, count: chroma)))
}

@Suite struct TerminalPictureTests {
    @Test("A character has two pixels: the upper one as foreground, the lower one as background")
    func halves() {
        let luma = [UInt8](repeating: 235, count: 8 * 4) + [UInt8](repeating: 16, count: 8 * 4)
        let text = String(
            decoding: TerminalPicture.draw(picture(width: 8, height: 8, luma: luma), columns: 2, rows: 1), as: UTF8.self
        )
        #expect(text == "\u{1b}[H\u{1b}[38;2;255;255;255m\u{1b}[48;2;0;0;0m\u{2580}\u{2580}\u{1b}[0m")
    }

    @Test("Colours are those of the frame")
    func colours() {
        // Red of BT.601.
        let frame = picture(width: 16, height: 16, luma: [UInt8](repeating: 82, count: 256), blue: 90, red: 240)
        let text = String(decoding: TerminalPicture.draw(frame, columns: 1, rows: 1), as: UTF8.self)
        #expect(text.contains("[38;2;255;1;0m") || text.contains("[38;2;255;0;0m"))
    }

    @Test("The frame keeps its aspect ratio in terminals of any size")
    func shape() {
        #expect(TerminalPicture.size(width: 640, height: 480, columns: 80, rows: 50) == (80, 30))
        #expect(TerminalPicture.size(width: 640, height: 480, columns: 80, rows: 23) == (61, 23))
        #expect(TerminalPicture.size(width: 1920, height: 1080, columns: 200, rows: 60) == (200, 56))
        #expect(TerminalPicture.size(width: 640, height: 480, columns: 0, rows: 10) == (0, 0))
        #expect(TerminalPicture.draw(picture(width: 2, height: 2, luma: [16, 16, 16, 16]), columns: 0, rows: 0) == [])
    }
}

@Suite struct FrameFitTests {
    @Test func `a whole frame keeps its shape, a filling one loses two edges, and a stretched one fills the terminal`()
    {
        func place(_ width: Int, _ height: Int, _ fit: FrameFit) -> [Int] {
            let place = TerminalPicture.place(width: width, height: height, columns: 40, rows: 10, fit)
            return [place.columns, place.rows, place.part.x, place.part.y, place.part.width, place.part.height]
        }
        // 40 x 10 characters are 40 x 20 pixels.
        #expect(place(640, 480, .whole) == [26, 10, 0, 0, 640, 480])
        #expect(place(640, 480, .filling) == [40, 10, 0, 80, 640, 320])
        #expect(place(1000, 200, .filling) == [40, 10, 300, 0, 400, 200])
        #expect(place(640, 480, .stretched) == [40, 10, 0, 0, 640, 480])
        #expect(place(1, 1, .filling) == [40, 10, 0, 0, 1, 1])
        #expect(place(0, 480, .filling) == [0, 0, 0, 0, 0, 480])
    }

    @Test func `only the part of a frame is drawn`() {
        // White above, black below.
        let luma = [UInt8](repeating: 235, count: 8 * 4) + [UInt8](repeating: 16, count: 8 * 4)
        let frame = picture(width: 8, height: 8, luma: luma)
        func text(_ y: Int) -> String {
            let part = FramePart(x: 2, y: y, width: 4, height: 4)
            return String(decoding: TerminalPicture.draw(frame, columns: 1, rows: 1, part: part), as: UTF8.self)
        }
        #expect(text(0).contains("[38;2;255;255;255m\u{1b}[48;2;255;255;255m"))
        #expect(text(4).contains("[38;2;0;0;0m\u{1b}[48;2;0;0;0m"))
    }
}

extension MediaNodesTests {
    @Suite struct TerminalTests {
        @Test("A terminal is drawn in its own size, at most at the requested rate, and its cursor is restored")
        func drawing() async throws {
            var primary: Int32 = -1
            var secondary: Int32 = -1
            var size = winsize()
            size.ws_col = 40
            size.ws_row = 16
            #expect(openpty(&primary, &secondary, nil, nil, &size) == 0)
            defer {
                close(primary)
                close(secondary)
            }
            let name = try #require(ttyname(secondary).map { String(cString: $0) })
            let output = Collected<[UInt8]>()
            let reading = primary
            let reader = Task.detached {
                var bytes = [UInt8](repeating: 0, count: 65536)
                while true {
                    let count = read(reading, &bytes, bytes.count)
                    guard count > 0 else { return }
                    output.append(Array(bytes.prefix(count)))
                }
            }
            defer { reader.cancel() }
            func text() -> String { String(decoding: output.all.flatMap { $0 }, as: UTF8.self) }
            func pictures() -> Int { text().components(between: "\u{1b}[H") }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        Node("terminal", settings: ["device": .text(name), "fps": 5])
                    }
                })
            try await pipeline.start()
            await eventually("four frames") { pictures() >= 4 }
            let frames = pipeline.statistics.videoRenderers["terminal"]?.framesRendered ?? 0
            #expect(frames >= 15, "frames that are not drawn are still consumed")
            await pipeline.stop()
            await eventually("the cursor") { text().contains("\u{1b}[?25h") }
            #expect(text().contains("\u{1b}[?25l"))
            #expect(text().contains("\u{1b}[38;2;"))
            // 40 columns of a 4:3 frame are 15 rows: 14 line feeds per frame.
            let first = text().piece(1, separatedBy: "\u{1b}[H")
            #expect(first.count { $0 == "\u{2580}" } == 40 * 15)
        }

        @Test("A missing terminal is refused with a message")
        func absent() async {
            await #expect {
                _ = try await MediaPipeline(
                    MediaGraph {
                        Chain {
                            Node.testPattern()
                            Node("terminal", settings: ["device": "/dev/pts/none"])
                        }
                    })
            } throws: { "\($0)".contains("/dev/pts/none") }
        }
    }
}

extension String {
    fileprivate func components(between separator: String) -> Int {
        var count = 0
        var rest = self[...]
        while let found = rest.firstRange(of: separator) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }

    fileprivate func piece(_ index: Int, separatedBy separator: String) -> String {
        split(separator: separator, omittingEmptySubsequences: false).dropFirst(index).first.map(String.init) ?? ""
    }
}
