internal import ServerCore

/// The identity of a service. A client with this pair may sign in.
public struct ServiceKey: Sendable, Equatable {
    public var id: String
    public var secret: String

    /// - Precondition of use: `RoomServer` refuses an empty secret, because it would admit everyone.
    public init(id: String, secret: String) {
        self.id = id
        self.secret = secret
    }

    /// A random key for this run only.
    public static func development() -> ServiceKey {
        ServiceKey(id: "dev-" + RandomToken.text(bytes: 4), secret: RandomToken.text(bytes: 32))
    }

    /// Whether the pair matches. Takes the same time wherever the secrets differ.
    func admits(id: String, secret: String) -> Bool {
        let sameID = constantTimeEqual(Array(self.id.utf8), Array(id.utf8))
        let sameSecret = constantTimeEqual(Array(self.secret.utf8), Array(secret.utf8))
        return sameID && sameSecret && !self.secret.isEmpty
    }
}

/// Random text for tokens, from the system's generator (getrandom).
enum RandomToken {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// `bytes` random bytes in base64url (RFC 4648, section 5) without padding.
    static func text(bytes count: Int) -> String {
        var text: [UInt8] = []
        var accumulator: UInt32 = 0
        var bits = 0
        for byte in bytes(count) {
            accumulator = accumulator << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[Int(accumulator >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(accumulator << UInt32(6 - bits) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }
}
