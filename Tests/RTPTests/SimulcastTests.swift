import RTP
import Testing

@Suite struct SimulcastTests {
    private func description(_ lines: String...) throws -> MediaDescription {
        let text =
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\n"
            + lines.map { "a=\($0)\r\n" }.joined()
        return try SessionDescription(parsing: text).media[0]
    }

    @Test func `layers are written as RFC 8851 and RFC 8853 have them, and read back`() throws {
        let text = try SessionDescription(
            sessionID: 1,
            media: [
                {
                    var media = try description()
                    media.simulcast = Simulcast(sent: ["q", "h", "f"])
                    return media
                }()
            ]
        ).serialized()
        for line in ["a=rid:q send", "a=rid:h send", "a=rid:f send", "a=simulcast:send q;h;f"] {
            #expect(text.contains("\r\n\(line)\r\n"))
        }
        #expect(try SessionDescription(parsing: text).media[0].simulcast == Simulcast(sent: ["q", "h", "f"]))
    }

    @Test func `restrictions, alternatives and paused layers are read`() throws {
        let media = try description(
            "rid:a send pt=96;max-width=1280", "rid:b send", "rid:c send", "rid:d recv", "simulcast:send ~a;b,c recv d")
        #expect(media.simulcast == Simulcast(sent: ["a", "b"], received: ["d"]))
    }

    @Test func `a layer without its identifier's line, or listed again, does not count`() throws {
        #expect(
            try description("rid:q recv", "rid:f recv", "simulcast:recv q;h;f;q").simulcast?.received == ["q", "f"])
        #expect(try description("rid:q send", "simulcast:recv q").simulcast == nil)
        #expect(try description("rid:q send").simulcast == nil)
        #expect(try description("simulcast:send q").simulcast == nil)
    }

    @Test func `long lists are cut off, and long identifiers are ignored`() throws {
        let names = (0..<100).map { "r\($0)" }
        let text =
            "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\n" + names.map { "a=rid:\($0) send\r\n" }.joined()
            + "a=simulcast:send \(names.joined(separator: ";"))\r\n"
        #expect(try SessionDescription(parsing: text).media[0].simulcast?.sent.count == Simulcast.maximumLayers)
        let long = String(repeating: "x", count: 17)
        #expect(try description("rid:\(long) send", "simulcast:send \(long)").simulcast == nil)
    }
}
