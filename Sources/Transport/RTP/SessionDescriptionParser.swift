extension SessionDescription {
    /// Parses a description. Drops unknown attributes. Session-level transport attributes apply to media descriptions
    /// without their own, and those of the first bundled one to bundled ones without any.
    ///
    /// Throws `sdp.too-large` beyond the limits of this type, and `sdp.malformed` for a syntax error.
    public init(parsing text: String) throws(TransportError) {
        guard text.utf8.count <= Self.maximumLength else {
            throw TransportError(
                code: "sdp.too-large",
                message: "The session description has \(text.utf8.count) bytes; the limit is \(Self.maximumLength)."
            )
        }
        var parser = DescriptionParser()
        var isFirst = true
        for line in text.utf8.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let line = Substring(line)
            if isFirst {
                guard line == "v=0" else { throw .malformed("a first line other than v=0", line) }
                isFirst = false
                continue
            }
            try parser.take(line)
        }
        guard !isFirst else { throw .malformed("no content", "") }
        self = try parser.finish()
    }
}

extension TransportError {
    fileprivate static func malformed(_ what: String, _ line: Substring) -> TransportError {
        TransportError(
            code: "sdp.malformed", message: "The session description has \(what): \"\(line.prefix(80))\".")
    }

    fileprivate static func tooMany(_ what: String, _ limit: Int) -> TransportError {
        TransportError(
            code: "sdp.too-large", message: "The session description has more than \(limit) \(what).")
    }
}

/// Transport attributes of one level, each absent until its line is seen.
private struct TransportAttributes {
    var iceUfrag: String?
    var icePwd: String?
    var fingerprints: [Fingerprint] = []
    var setup: TransportDescription.Setup?
    var candidates: [String] = []
    var endOfCandidates = false
    var isLite = false

    func filled(from other: TransportAttributes) -> TransportAttributes {
        var filled = self
        if iceUfrag == nil, icePwd == nil {
            filled.iceUfrag = other.iceUfrag
            filled.icePwd = other.icePwd
        }
        if fingerprints.isEmpty { filled.fingerprints = other.fingerprints }
        filled.setup = setup ?? other.setup
        filled.isLite = isLite || other.isLite
        return filled
    }

    /// With the candidates of another one, unless it has its own, or is another transport.
    func withCandidates(of other: TransportAttributes) -> TransportAttributes {
        guard candidates.isEmpty, !endOfCandidates, iceUfrag == other.iceUfrag else { return self }
        var filled = self
        (filled.candidates, filled.endOfCandidates) = (other.candidates, other.endOfCandidates)
        return filled
    }

    var description: TransportDescription {
        TransportDescription(
            iceUfrag: iceUfrag ?? "", icePwd: icePwd ?? "", fingerprints: fingerprints, setup: setup ?? .actpass,
            candidates: candidates, endOfCandidates: endOfCandidates, isLite: isLite)
    }
}

private struct DescriptionParser {
    /// Longer lists of one media description are an attack, not a stream.
    static let maximumPerMedia = 128

    var sessionID: UInt64 = 0
    var version: UInt64 = 0
    var bundle: [String]?
    var session = TransportAttributes()
    var direction = MediaDirection.sendrecv
    var media: [MediaParser] = []
    var candidates = 0

    mutating func take(_ line: Substring) throws(TransportError) {
        let bytes = line.utf8
        let second = bytes.index(bytes.startIndex, offsetBy: 2, limitedBy: bytes.endIndex)
        guard let second, bytes[bytes.index(after: bytes.startIndex)] == UInt8(ascii: "=") else {
            throw .malformed("a line that is not \"x=value\"", line)
        }
        let value = line[second...]
        switch bytes[bytes.startIndex] {
        case UInt8(ascii: "o"):
            let parts = value.split(separator: " ")
            guard parts.count == 6, let id = UInt64(parts[1]), let number = UInt64(parts[2]) else {
                throw .malformed("a malformed origin", line)
            }
            sessionID = id
            version = number
        case UInt8(ascii: "m"):
            guard media.count < SessionDescription.maximumMedia else {
                throw .tooMany("media descriptions", SessionDescription.maximumMedia)
            }
            media.append(try MediaParser(mediaLine: value, direction: direction))
        case UInt8(ascii: "a"):
            try attribute(value, line)
        default:
            break
        }
    }

    private mutating func attribute(_ text: Substring, _ line: Substring) throws(TransportError) {
        let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        let name = colon.map { text[..<$0] } ?? text
        let value = colon.map { text[text.utf8.index(after: $0)...] } ?? ""
        if name == "candidate" {
            candidates += 1
            guard candidates <= SessionDescription.maximumCandidates else {
                throw .tooMany("candidates", SessionDescription.maximumCandidates)
            }
        }
        if media.isEmpty {
            try sessionAttribute(name, value, line)
        } else {
            try media[media.count - 1].attribute(name, value, line)
        }
    }

    private mutating func sessionAttribute(
        _ name: Substring, _ value: Substring, _ line: Substring
    ) throws(TransportError) {
        if name == "group" {
            let parts = value.split(separator: " ")
            if parts.first == "BUNDLE", bundle == nil {
                guard parts.count <= SessionDescription.maximumMedia + 1 else {
                    throw .tooMany("bundled mids", SessionDescription.maximumMedia)
                }
                bundle = parts.dropFirst().map(String.init)
            }
        } else if let known = MediaDirection(rawValue: String(name)) {
            direction = known
        } else if name == "ice-lite" {
            session.isLite = true
        } else {
            try session.take(name, value, line)
        }
    }

    func finish() throws(TransportError) -> SessionDescription {
        var mids: Set<String> = []
        var result: [MediaDescription] = []
        let bundled = Set(bundle ?? [])
        let tagged = bundle?.first.flatMap { first in media.first { $0.mid == first } } ?? nil
        for (index, parser) in media.enumerated() {
            var transport = parser.transport.filled(from: session)
            let mid = parser.mid ?? String(index)
            guard mids.insert(mid).inserted else { throw .malformed("a duplicate mid", Substring(mid)) }
            if let tagged, bundled.contains(mid) {
                let shared = tagged.transport.filled(from: session)
                transport = transport.filled(from: shared)
                if !tagged.isRejected { transport = transport.withCandidates(of: shared) }
            }
            guard (transport.iceUfrag == nil) == (transport.icePwd == nil) else {
                throw .malformed("an ice-ufrag or ice-pwd without the other in the media description", Substring(mid))
            }
            result.append(parser.description(mid: mid, transport: transport.description))
        }
        return SessionDescription(sessionID: sessionID, version: version, bundle: bundle, media: result)
    }
}

extension TransportAttributes {
    mutating func take(_ name: Substring, _ value: Substring, _ line: Substring) throws(TransportError) {
        switch name {
        case "ice-ufrag":
            guard (4...256).contains(value.utf8.count) else { throw .malformed("an invalid ice-ufrag", line) }
            iceUfrag = String(value)
        case "ice-pwd":
            guard (22...256).contains(value.utf8.count) else { throw .malformed("an invalid ice-pwd", line) }
            icePwd = String(value)
        case "fingerprint":
            guard let fingerprint = Fingerprint(String(value)) else {
                throw .malformed("a malformed fingerprint", line)
            }
            guard fingerprints.count < 16 else { throw .tooMany("fingerprints in one place", 16) }
            fingerprints.append(fingerprint)
        case "setup":
            // holdconn (RFC 4145) is not used with DTLS.
            guard let known = TransportDescription.Setup(rawValue: String(value)) else {
                throw .malformed("an unknown setup", line)
            }
            setup = known
        case "candidate":
            candidates.append("candidate:\(value)")
        case "end-of-candidates":
            endOfCandidates = true
        default:
            break
        }
    }
}

private struct MediaParser {
    var kind: MediaDescription.Kind
    var applicationLine: MediaDescription.ApplicationLine?
    var port: Int
    var isBundleOnly = false
    var isMuxed = false
    var mid: String?
    var direction: MediaDirection
    var formats: [PayloadFormat] = []
    var positions: [UInt8: Int] = [:]
    /// Feedback for payload type `*`.
    var feedbackForAll: [String] = []
    var extensions: [HeaderExtension] = []
    var ssrcs: [SSRC] = []
    var fidGroups: [(SSRC, SSRC)] = []
    /// Each with its direction.
    var rids: [(id: String, isSent: Bool)] = []
    var simulcast: [Simulcast] = []
    var cname: String?
    var msid: String?
    var sourceMsid: String?
    var transport = TransportAttributes()
    var isRejected: Bool { port == 0 && !isBundleOnly }

    init(mediaLine: Substring, direction: MediaDirection) throws(TransportError) {
        self.direction = direction
        let parts = mediaLine.split(separator: " ", maxSplits: 3)
        guard parts.count == 4, let port = Int(parts[1].prefix { $0 != "/" }), (0...65535).contains(port) else {
            throw .malformed("a malformed media line", mediaLine)
        }
        self.port = port
        let isRTP = parts[2].hasSuffix("RTP/SAVPF") || parts[2].hasSuffix("RTP/SAVP") || parts[2].hasSuffix("RTP/AVPF")
        guard isRTP, let kind = MediaDescription.Kind(rawValue: String(parts[0])), kind != .application else {
            self.kind = .application
            applicationLine = .init(media: String(parts[0]), proto: String(parts[2]), formats: String(parts[3]))
            return
        }
        self.kind = kind
        for type in parts[3].split(separator: " ") {
            guard let number = UInt8(type), number < 128 else { throw .malformed("an invalid payload type", mediaLine) }
            guard positions[number] == nil else { throw .malformed("a duplicate payload type", mediaLine) }
            positions[number] = formats.count
            formats.append(PayloadFormat(payloadType: number, encoding: "", clockRate: 0))
        }
    }

    mutating func attribute(_ name: Substring, _ value: Substring, _ line: Substring) throws(TransportError) {
        switch name {
        case "mid":
            guard !value.isEmpty, value.utf8.count <= 64, !value.contains(" ") else {
                throw .malformed("an invalid mid", line)
            }
            mid = String(value)
        case "rtcp-mux":
            isMuxed = true
        case "bundle-only":
            isBundleOnly = true
        case "sendrecv", "sendonly", "recvonly", "inactive":
            direction = MediaDirection(rawValue: String(name)) ?? direction
        case "rtpmap":
            try rtpmap(value, line)
        case "fmtp":
            if let (position, rest) = try formatAndRest(value, line) { formats[position].parameters = String(rest) }
        case "rtcp-fb":
            try feedback(value, line)
        case "extmap":
            try extmap(value, line)
        case "rid":
            try rid(value, line)
        case "simulcast":
            try simulcast(value, line)
        case "msid":
            msid = String(value)
        case "ssrc":
            try source(value, line)
        case "ssrc-group":
            group(value)
        default:
            try transport.take(name, value, line)
        }
    }

    /// Index of the format that a value begins with, and the rest. Nil for a payload type that the m-line lacks.
    private func formatAndRest(
        _ value: Substring, _ line: Substring
    ) throws(TransportError) -> (Int, Substring)? {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let type = UInt8(parts[0]) else { throw .malformed("an invalid format line", line) }
        guard let position = positions[type] else { return nil }
        return (position, parts[1])
    }

    private mutating func rtpmap(_ value: Substring, _ line: Substring) throws(TransportError) {
        guard let (position, rest) = try formatAndRest(value, line) else { return }
        let parts = rest.split(separator: "/")
        guard parts.count >= 2, let rate = UInt32(parts[1]) else { throw .malformed("an invalid rtpmap", line) }
        formats[position].encoding = String(parts[0])
        formats[position].clockRate = rate
        guard parts.count > 2 else { return }
        guard let channels = Int(parts[2]), (1...255).contains(channels) else {
            throw .malformed("an invalid rtpmap", line)
        }
        formats[position].channels = channels
    }

    private mutating func feedback(_ value: Substring, _ line: Substring) throws(TransportError) {
        if value.hasPrefix("* ") {
            guard feedbackForAll.count < 32 else { throw .tooMany("feedback lines for one format", 32) }
            feedbackForAll.append(String(value.dropFirst(2)))
            return
        }
        guard let (position, rest) = try formatAndRest(value, line) else { return }
        guard formats[position].feedback.count < 32 else { throw .tooMany("feedback lines for one format", 32) }
        formats[position].feedback.append(String(rest))
    }

    private mutating func extmap(_ value: Substring, _ line: Substring) throws(TransportError) {
        let parts = value.split(separator: " ")
        // The id may have a direction, `3/recvonly`.
        let place = parts.first?.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false) ?? []
        guard parts.count >= 2, let number = place.first.flatMap({ UInt16($0) }), number != 0 else {
            throw .malformed("an invalid extmap", line)
        }
        // 15 is reserved, up to 255 needs the two-byte form, and larger ids exist only in offers.
        guard let id = UInt8(exactly: number), HeaderExtension.ids.contains(id),
            let direction = place.count < 2 ? .sendrecv : MediaDirection(rawValue: String(place[1]))
        else { return }
        guard extensions.count < DescriptionParser.maximumPerMedia else {
            throw .tooMany("header extensions in one media description", DescriptionParser.maximumPerMedia)
        }
        extensions.append(HeaderExtension(id: id, uri: String(parts[1]), direction))
    }

    /// `q send`, perhaps with restrictions, which do not matter here: the size of a layer is that of its keyframes.
    private mutating func rid(_ value: Substring, _ line: Substring) throws(TransportError) {
        let parts = value.split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, parts[1] == "send" || parts[1] == "recv", Simulcast.isValid(String(parts[0])) else {
            throw .malformed("an invalid rid", line)
        }
        guard !rids.contains(where: { $0.id == parts[0] }) else { throw .malformed("a duplicate rid", line) }
        guard rids.count < Self.maximumRids else {
            throw .tooMany("rids in one media description", Self.maximumRids)
        }
        rids.append((String(parts[0]), parts[1] == "send"))
    }

    private static let maximumRids = 16

    /// `send q;h,i;~f`, perhaps with another direction behind it (RFC 8853, section 5.1).
    private mutating func simulcast(_ value: Substring, _ line: Substring) throws(TransportError) {
        let parts = value.split(separator: " ")
        guard simulcast.isEmpty, parts.count == 2 || parts.count == 4 else {
            throw .malformed("an invalid simulcast line", line)
        }
        for place in stride(from: 0, to: parts.count, by: 2) {
            guard parts[place] == "send" || parts[place] == "recv" else {
                throw .malformed("an invalid simulcast line", line)
            }
            var listed: [String] = []
            var paused: Set<String> = []
            for stream in parts[place + 1].split(separator: ";", omittingEmptySubsequences: false) {
                // Of alternatives the first one. A tilde marks a layer that begins paused.
                let first = stream.split(separator: ",", maxSplits: 1).first ?? ""
                let rid = String(first.first == "~" ? first.dropFirst() : first)
                guard Simulcast.isValid(rid), !listed.contains(rid) else {
                    throw .malformed("an invalid simulcast line", line)
                }
                guard listed.count < Self.maximumRids else {
                    throw .tooMany("rids in one media description", Self.maximumRids)
                }
                listed.append(rid)
                if first.first == "~" { paused.insert(rid) }
            }
            var layers = Simulcast(isSending: parts[place] == "send", rids: listed)
            layers.paused = paused
            simulcast.append(layers)
        }
    }

    /// The layers in the direction of the m-line. Those without a rid line of this direction do not count (RFC 8853, section
    /// 5.2).
    private var layers: Simulcast? {
        let isReceiving = direction == .recvonly
        let listed = simulcast.first { $0.isSending != isReceiving } ?? simulcast.first
        guard var listed else { return nil }
        listed.rids.removeAll { rid in !rids.contains { $0.id == rid && $0.isSent == listed.isSending } }
        return listed.rids.isEmpty ? nil : listed
    }

    private mutating func source(_ value: Substring, _ line: Substring) throws(TransportError) {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard let first = parts.first, let number = UInt32(first) else { throw .malformed("an invalid ssrc", line) }
        let ssrc = SSRC(number)
        if !ssrcs.contains(ssrc) {
            guard ssrcs.count < DescriptionParser.maximumPerMedia else {
                throw .tooMany("sources in one media description", DescriptionParser.maximumPerMedia)
            }
            ssrcs.append(ssrc)
        }
        guard parts.count == 2 else { return }
        if parts[1].hasPrefix("cname:") {
            if cname == nil { cname = String(parts[1].dropFirst(6)) }
        } else if parts[1].hasPrefix("msid:") {
            if sourceMsid == nil { sourceMsid = String(parts[1].dropFirst(5)) }
        }
    }

    private mutating func group(_ value: Substring) {
        let parts = value.split(separator: " ")
        guard parts.count >= 3, parts[0] == "FID", let first = UInt32(parts[1]), let second = UInt32(parts[2]),
            fidGroups.count < DescriptionParser.maximumPerMedia
        else { return }
        fidGroups.append((SSRC(first), SSRC(second)))
    }

    func description(mid: String, transport: TransportDescription) -> MediaDescription {
        let repeating = Set(fidGroups.map { $0.1 })
        var primary = ssrcs.filter { !repeating.contains($0) }
        for (first, _) in fidGroups where !primary.contains(first) { primary.append(first) }
        let retransmission = fidGroups.first { $0.0 == primary.first }?.1
        var formats = formats
        for index in formats.indices { formats[index].feedback += feedbackForAll }
        var description = MediaDescription(
            kind: kind, mid: mid, direction: direction, formats: formats, extensions: extensions, ssrcs: primary,
            retransmissionSSRC: retransmission, cname: cname == "-" ? nil : cname, msid: msid ?? sourceMsid,
            transport: transport, isRejected: isRejected, applicationLine: applicationLine)
        description.isMuxed = isMuxed
        description.simulcast = layers
        return description
    }
}
