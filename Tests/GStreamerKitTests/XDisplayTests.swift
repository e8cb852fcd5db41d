import MediaGraph
import TestFixtures
import Testing

@testable import GStreamerKit

@Suite(.serialized) struct XDisplayTests {
    @Test("A display reports its size and windows; a missing one reports nothing")
    func windows() throws {
        let fixture = try Fixture.display("--size", "800x600", "--window", "320x180")
        let display = fixture.answer.display
        let screen = try #require(XDisplay.screen(of: display))
        #expect(screen.width == 800 && screen.height == 600)
        let window = try #require(XDisplay.windows(of: display).first { $0.title.contains(fixture.answer.title) })
        #expect(window.width == 320 && window.height == 180 && window.isShown)
        #expect(XDisplay.window(window.identifier, of: display) == window)
        fixture.end()
        #expect(XDisplay.screen(of: display) == nil)
    }

    @Test("Xlib is unchanged until the first X element is created")
    func untouched() async {
        await #expect(processExitsWith: .success) {
            let pipeline = Pipeline { _ in }
            let elements = [try Element("videotestsrc", ["num-buffers": 2]), try Element("fakesink")]
            for element in elements { pipeline.add(element) }
            try elements[0].link(elements[1])
            #expect(pipeline.play())
            pipeline.stop()
            #expect(GStreamer.has("ximagesink"))
            #expect(!XConnections.isSurviving)
            _ = try Element("ximagesink")
            #expect(XConnections.isSurviving)
        }
    }

    @Test("A missing window is a result, not the end of the process")
    func absentWindow() throws {
        let fixture = try Fixture.display("--empty")
        #expect(XDisplay.window(0x123_4567, of: fixture.answer.display) == nil)
    }
}
