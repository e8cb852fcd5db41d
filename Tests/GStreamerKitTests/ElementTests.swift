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

    @Test("Properties accept and return typed values")
    func properties() throws {
        let queue = try Element("queue", ["max-size-buffers": 7, "leaky": "downstream", "silent": true])
        #expect(queue.integer("max-size-buffers") == 7)
        #expect(queue.integer("leaky") == 2)
        #expect(!queue.has("bitrate"))
    }

    @Test("A missing property or value of an installed element is an error")
    func unknownProperties() throws {
        func refusal(_ body: () throws -> Void) -> MediaError? { #expect(throws: MediaError.self, performing: body) }
        let property = refusal { _ = try Element("queue", ["leeky": "downstream"]) }
        #expect(property?.code == "element.property")
        #expect(property?.message.contains("queue has no property leeky; did you mean leaky? GStreamer 1.") == true)
        let value = refusal { _ = try Element("queue", ["leaky": "sideways"]) }
        #expect(value?.code == "element.property")
        #expect(value?.message.contains("queue.leaky cannot be sideways") == true)
        let pad = try #require(try Element("compositor").requestPad("sink_%u"))
        try pad.set("sizing-policy", "keep-aspect-ratio")
        #expect(refusal { try pad.set("sizing-policy", "squeeze") }?.code == "element.property")
        #expect(refusal { try pad.set("depth", 1) }?.code == "element.property")
    }
}
