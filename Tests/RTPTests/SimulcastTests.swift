import RTP
import Testing

@Suite struct SimulcastTests {
    private func video(_ attributes: [String], direction: String = "sendonly") throws -> Simulcast? {
        let lines =
            ["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=video 9 UDP/TLS/RTP/SAVPF 96", "a=\(direction)"]
            + attributes.map { "a=\($0)" }
        return try SessionDescription(parsing: lines.joined(separator: "\r\n") + "\r\n").media.first?.simulcast
    }

    private func code(_ attributes: [String]) -> String? {
        do {
            _ = try video(attributes)
            return nil
        } catch {
            return (error as? TransportError)?.code
        }
    }

    @Test func `the layers of an offer are read in the order of its simulcast line, and written again`() throws {
        let offered = try video(["rid:f send", "rid:q send", "rid:h send pt=96;max-width=640", "simulcast:send q;h;f"])
        #expect(offered == Simulcast(isSending: true, rids: ["q", "h", "f"]))
        let transport = TransportDescription(iceUfrag: "", icePwd: "", fingerprints: [], setup: .actpass)
        var media = MediaDescription(kind: .video, mid: "0", direction: .recvonly, transport: transport)
        media.simulcast = Simulcast(isSending: false, rids: ["q", "h"])
        let text = SessionDescription(sessionID: 1, media: [media]).serialized()
        #expect(text.contains("a=rid:q recv\r\na=rid:h recv\r\na=simulcast:recv q;h\r\n"))
        #expect(try SessionDescription(parsing: text).media.first?.simulcast == media.simulcast)
    }

    @Test func `alternatives, pauses and the other direction of a simulcast line are understood`() throws {
        let rids = ["rid:a send", "rid:b send", "rid:c recv"]
        #expect(try video(rids + ["simulcast:send ~a;b,a recv c"])?.rids == ["a", "b"])
        #expect(try video(rids + ["simulcast:send a recv c"], direction: "recvonly")?.rids == ["c"])
    }

    @Test func `rids without a simulcast line, and layers without a rid line, do not count`() throws {
        #expect(try video(["rid:a send", "rid:b send"]) == nil)
        #expect(try video(["rid:a send", "simulcast:send a;b"])?.rids == ["a"])
        #expect(try video(["simulcast:send a;b"]) == nil)
    }

    @Test(arguments: [
        ["rid:a send", "rid:a send"], ["rid:a"], ["rid:a both"], ["rid:seventeen-letters send"], ["rid:ä send"],
        ["rid: send"], ["simulcast:send"], ["simulcast:send a;a"], ["simulcast:send a;;b"], ["simulcast:both a"],
        ["simulcast:send a", "simulcast:send a"],
    ])
    func `a malformed or repeated rid is refused`(attributes: [String]) {
        #expect(code(attributes) == "sdp.malformed")
    }

    @Test func `the number of rids is bounded`() {
        #expect(code((0..<17).map { "rid:r\($0) send" }) == "sdp.too-large")
        #expect(code(["simulcast:send " + (0..<1000).map { "r\($0)" }.joined(separator: ";")]) == "sdp.too-large")
    }
}
