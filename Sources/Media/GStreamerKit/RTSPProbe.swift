package import MediaGraph

/// Asks an RTSP server what it would send, without having it sent (DESCRIBE, RFC 2326 section 10.2).
///
/// GStreamer's own rtspsrc says "Generic error" of a port that refuses, of a host that does not exist and of one that
/// does not answer; this says which, and it says what the streams are before anything runs.
package enum RTSPProbe {
    package enum Failure: Error, Sendable, Hashable {
        case noSuchHost
        case refused
        /// No answer in the time given.
        case silent
        /// What the system said.
        case unreachable(String)
        /// The server wants a name and a password, or others than were given.
        case unauthorized(wereGiven: Bool)
        /// It wants them in a way that is not known here.
        case unknownScheme(String)
        case notFound
        /// Another status than success.
        case status(Int, String)
        case notRTSP
    }

    /// Blocks until the answer is there, `seconds` at most.
    package static func describe(_ address: RTSPAddress, seconds: Double) throws(Failure) -> NetworkCamera {
        let deadline = GStreamer.now.nanoseconds + UInt64(seconds * 1e9)
        var connection = try RTSPConnection(address, deadline: deadline)
        var answer = try connection.describe(address.url, authorization: nil)
        if answer.status == 401 {
            guard let user = address.user else { throw .unauthorized(wereGiven: false) }
            let challenges = answer.headers(named: "www-authenticate").compactMap(RTSPChallenge.init)
            let authorization = challenges.lazy.compactMap {
                $0.authorization(method: "DESCRIBE", url: address.url, user: user, password: address.password ?? "")
            }.first
            guard let authorization else { throw .unknownScheme(challenges.first?.scheme ?? "no known one") }
            if answer.headers(named: "connection").contains(where: { $0.lowercased() == "close" }) {
                connection = try RTSPConnection(address, deadline: deadline)
            }
            answer = try connection.describe(address.url, authorization: authorization)
        }
        switch answer.status {
        case 200..<300: return NetworkCamera(sessionDescription: answer.body)
        case 401, 403: throw .unauthorized(wereGiven: address.user != nil)
        case 404: throw .notFound
        default: throw .status(answer.status, answer.reason)
        }
    }
}

/// What an RTSP server answers.
struct RTSPAnswer {
    let status: Int
    let reason: String
    private var lines: [(name: String, value: String)] = []
    var body = ""

    /// Nil when this is not RTSP.
    init?(head: String) {
        let rows = head.split(separator: "\r\n")
        guard let first = rows.first, first.hasPrefix("RTSP/") else { return nil }
        let words = first.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, let status = Int(words[1]) else { return nil }
        self.status = status
        reason = words.count > 2 ? String(words[2]) : ""
        for row in rows.dropFirst() {
            guard let colon = row.firstIndex(of: ":") else { continue }
            let value = row[row.index(after: colon)...].drop { $0 == " " }
            lines.append((row[..<colon].lowercased(), String(value)))
        }
    }

    /// The values of a header, whose name is in small letters.
    func headers(named name: String) -> [String] {
        lines.filter { $0.name == name }.map(\.value)
    }
}

/// How a server wants to be told who asks: `Basic realm="..."` or `Digest realm="...", nonce="..."` (RFC 2617, which RTSP
/// 1.0 refers to; cameras know nothing newer).
struct RTSPChallenge {
    let scheme: String
    private let parameters: [String: String]

    init?(_ header: String) {
        guard let end = header.firstIndex(of: " ") else { return nil }
        scheme = String(header[..<end])
        var parameters: [String: String] = [:]
        var rest = header[end...]
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals].drop { $0 == " " || $0 == "," }
            rest = rest[rest.index(after: equals)...]
            let value: Substring
            if rest.first == "\"" {
                value = rest.dropFirst().prefix { $0 != "\"" }
                rest = rest.dropFirst(value.count + 2)
            } else {
                value = rest.prefix { $0 != "," }
                rest = rest.dropFirst(value.count)
            }
            parameters[name.lowercased()] = String(value)
        }
        self.parameters = parameters
    }

    /// The Authorization header's value; nil when the scheme is not known here.
    func authorization(method: String, url: String, user: String, password: String) -> String? {
        switch scheme.lowercased() {
        case "basic":
            return "Basic " + Hashing.base64(Array("\(user):\(password)".utf8))
        case "digest":
            // SHA-256 is in no camera that rtspsrc could then talk to.
            guard let realm = parameters["realm"], let nonce = parameters["nonce"],
                parameters["algorithm"].map({ $0.uppercased() == "MD5" }) ?? true
            else { return nil }
            let secret = Hashing.md5("\(user):\(realm):\(password)")
            let response = Hashing.md5("\(secret):\(nonce):\(Hashing.md5("\(method):\(url)"))")
            let opaque = parameters["opaque"].map { ", opaque=\"\($0)\"" } ?? ""
            return "Digest username=\"\(user)\", realm=\"\(realm)\", nonce=\"\(nonce)\", uri=\"\(url)\", "
                + "response=\"\(response)\"\(opaque)"
        default:
            return nil
        }
    }
}
