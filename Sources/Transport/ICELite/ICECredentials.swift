/// A ufrag and a password of this end, as a session description carries them (RFC 8445, section 5.3; RFC 8839, section
/// 5.4).
public struct ICECredentials: Sendable, Equatable {
    /// Letters, digits, `+` and `/`. RFC 8445 allows up to 256 of them in a ufrag. This end finds a session by its ufrag
    /// for every check, and a short one is a number.
    static let ufragLengths = 4...16
    /// One block of the HMAC at most.
    static let passwordLengths = 22...64
    private static let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    public let ufrag: String
    public let password: String

    /// Nil if the ufrag has other than 4...16 characters, the password other than 22...64, or one has a character that
    /// ICE does not allow.
    public init?(ufrag: String, password: String) {
        guard Self.ufragLengths.contains(ufrag.utf8.count), Self.passwordLengths.contains(password.utf8.count),
            (ufrag + password).utf8.allSatisfy(Self.characters.contains)
        else { return nil }
        self.ufrag = ufrag
        self.password = password
    }

    /// How many agents can share a port. The first character of a ufrag names one.
    public static var places: Int { characters.count }

    /// Random credentials: 48 bits for the ufrag besides its place, 144 for the password.
    ///
    /// - Parameters:
    ///   - generator: A source for secrets, such as `SystemRandomNumberGenerator`.
    ///   - place: That of the agent, below `places`.
    public init(using generator: inout some RandomNumberGenerator, at place: Int = 0) {
        func text(_ length: Int) -> String {
            String(
                decoding: (0..<length).map { _ in Self.characters[Int.random(in: 0..<64, using: &generator)] },
                as: UTF8.self)
        }
        ufrag = String(UnicodeScalar(Self.characters[place])) + text(8)
        password = text(24)
    }

    /// The place that the first byte of a ufrag names. Nil if no ufrag has such a byte.
    static func place(in first: UInt8) -> Int? { characters.firstIndex(of: first) }
}

/// A ufrag of this end as a number, so that bytes of a datagram find their session without a String.
struct LocalUfrag: Hashable {
    private var high: UInt64 = 0
    private var low: UInt64 = 0
    private var count = 0

    /// The bytes before the first colon of a check's USERNAME. Nil without a colon, or if this end has no such ufrag.
    init?(of username: Range<Int>, in datagram: Span<UInt8>) {
        var place = username.lowerBound
        while true {
            guard place < username.upperBound, count <= ICECredentials.ufragLengths.upperBound else { return nil }
            if datagram[place] == UInt8(ascii: ":") { return }
            append(datagram[place])
            place += 1
        }
    }

    init(_ credentials: ICECredentials) {
        for byte in credentials.ufrag.utf8 { append(byte) }
    }

    private mutating func append(_ byte: UInt8) {
        high = high << 8 | low >> 56
        low = low << 8 | UInt64(byte)
        count += 1
    }

    /// The sender's ufrag: the bytes behind the colon.
    func rest(of username: Range<Int>) -> Range<Int> { (username.lowerBound + count + 1)..<username.upperBound }
}
