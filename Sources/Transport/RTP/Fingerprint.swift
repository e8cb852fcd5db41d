/// A certificate fingerprint as in SDP: `sha-256 AB:CD:...` (RFC 8122, section 5).
public struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
    public var algorithm: String
    public var digest: [UInt8]

    public init(algorithm: String, digest: [UInt8]) {
        self.algorithm = algorithm.lowercased()
        self.digest = digest
    }

    /// Parses the value of an `a=fingerprint` line. Nil if it is malformed.
    public init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2 else { return nil }
        var digest: [UInt8] = []
        for pair in parts[1].split(separator: ":", omittingEmptySubsequences: false) {
            // The initialiser alone would accept a sign as the first digit.
            guard pair.utf8.count == 2, pair.first?.isHexDigit == true, let byte = UInt8(pair, radix: 16) else {
                return nil
            }
            digest.append(byte)
        }
        guard !digest.isEmpty, digest.count <= 64 else { return nil }
        self.init(algorithm: String(parts[0]), digest: digest)
    }

    public var description: String {
        let hex = digest.map { byte in
            let text = String(byte, radix: 16, uppercase: true)
            return text.count == 1 ? "0" + text : text
        }
        return "\(algorithm) \(hex.joined(separator: ":"))"
    }
}
