extension SessionDescription {
    /// The description as text, with lines ending in CR LF. Parsing it returns an equal value.
    ///
    /// Of bundled media with the same candidates, the first one of the group has them (RFC 9143).
    ///
    /// Removes line breaks inside of values, so that no value can add a line.
    public func serialized() -> String {
        var writer = DescriptionWriter()
        writer.line("v=0")
        writer.line("o=- \(sessionID) \(version) IN IP4 127.0.0.1")
        writer.line("s=-")
        writer.line("t=0 0")
        let group = bundle ?? media.filter { !$0.isRejected }.map(\.mid)
        if !group.isEmpty { writer.line("a=group:BUNDLE \(group.joined(separator: " "))") }
        writer.line("a=msid-semantic: WMS *")
        if media.contains(where: \.transport.isLite) { writer.line("a=ice-lite") }
        let tagged = group.first.flatMap { first in media.first { $0.mid == first && !$0.isRejected } }
        for var description in media {
            // Bundled media has one transport. Candidates in each of many m-lines would exceed the limits of readers.
            if let tagged, description.mid != tagged.mid, group.contains(description.mid),
                description.transport.hasCandidates(of: tagged.transport)
            {
                (description.transport.candidates, description.transport.endOfCandidates) = ([], false)
            }
            writer.media(description)
        }
        return writer.text
    }
}

extension TransportDescription {
    fileprivate func hasCandidates(of other: TransportDescription) -> Bool {
        iceUfrag == other.iceUfrag && candidates == other.candidates && endOfCandidates == other.endOfCandidates
    }
}

private struct DescriptionWriter {
    var text = ""

    mutating func line(_ value: String) {
        for scalar in value.unicodeScalars where scalar != "\r" && scalar != "\n" {
            text.unicodeScalars.append(scalar)
        }
        text += "\r\n"
    }

    mutating func media(_ description: MediaDescription) {
        let port = description.isRejected ? 0 : 9
        if description.kind == .application {
            let written = description.applicationLine
            let media = written?.media ?? "application"
            let proto = written?.proto ?? "UDP/DTLS/SCTP"
            line("m=\(media) \(port) \(proto) \(written?.formats ?? "webrtc-datachannel")")
        } else {
            let types = description.formats.map { String($0.payloadType) }.joined(separator: " ")
            line("m=\(description.kind.rawValue) \(port) UDP/TLS/RTP/SAVPF \(types.isEmpty ? "0" : types)")
        }
        line("c=IN IP4 0.0.0.0")
        line("a=mid:\(description.mid)")
        transport(description.transport)
        guard description.kind != .application else { return }
        line("a=\(description.direction.rawValue)")
        if description.isMuxed { line("a=rtcp-mux") }
        line("a=rtcp-rsize")
        for value in description.extensions {
            let direction = value.direction == .sendrecv ? "" : "/\(value.direction.rawValue)"
            line("a=extmap:\(value.id)\(direction) \(value.uri)")
        }
        for format in description.formats { self.format(format) }
        if let simulcast = description.simulcast {
            let direction = simulcast.isSending ? "send" : "recv"
            for rid in simulcast.rids { line("a=rid:\(rid) \(direction)") }
            line("a=simulcast:\(direction) \(simulcast.rids.joined(separator: ";"))")
        }
        sources(description)
    }

    private mutating func transport(_ transport: TransportDescription) {
        if !transport.iceUfrag.isEmpty {
            line("a=ice-ufrag:\(transport.iceUfrag)")
            line("a=ice-pwd:\(transport.icePwd)")
            line("a=ice-options:trickle")
        }
        for fingerprint in transport.fingerprints { line("a=fingerprint:\(fingerprint)") }
        line("a=setup:\(transport.setup.rawValue)")
        for candidate in transport.candidates { line("a=\(candidate)") }
        if transport.endOfCandidates { line("a=end-of-candidates") }
    }

    private mutating func format(_ format: PayloadFormat) {
        let type = format.payloadType
        if !format.encoding.isEmpty {
            let channels = format.channels > 1 ? "/\(format.channels)" : ""
            line("a=rtpmap:\(type) \(format.encoding)/\(format.clockRate)\(channels)")
        }
        for feedback in format.feedback { line("a=rtcp-fb:\(type) \(feedback)") }
        if !format.parameters.isEmpty { line("a=fmtp:\(type) \(format.parameters)") }
    }

    private mutating func sources(_ description: MediaDescription) {
        if let msid = description.msid { line("a=msid:\(msid)") }
        if let first = description.ssrcs.first, let repeated = description.retransmissionSSRC {
            line("a=ssrc-group:FID \(first) \(repeated)")
        }
        for ssrc in description.ssrcs + (description.retransmissionSSRC.map { [$0] } ?? []) {
            // A source needs one attribute to appear.
            line("a=ssrc:\(ssrc) cname:\(description.cname ?? "-")")
            if let msid = description.msid { line("a=ssrc:\(ssrc) msid:\(msid)") }
        }
    }
}
