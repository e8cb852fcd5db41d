import GStreamerKit
import MediaGraph
import Testing

@Suite struct ElementTests {
    @Test("A missing element names itself and a Debian package")
    func missing() {
        let error = #expect(throws: MediaError.self) { try Element("no-such-element") }
        #expect(error?.code == "element.missing")
        #expect(error?.message.contains("no-such-element") == true)
        #expect(error?.message.contains("gstreamer1.0-plugins") == true)
        #expect(GStreamer.debianPackage(of: "x264enc") == "gstreamer1.0-plugins-ugly")
    }

    @Test("Properties take and give typed values")
    func properties() throws {
        let queue = try Element("queue", ["max-size-buffers": 7, "leaky": "downstream", "silent": true])
        #expect(queue.integer("max-size-buffers") == 7)
        #expect(queue.integer("leaky") == 2)
        #expect(!queue.has("bitrate"))
    }
}
