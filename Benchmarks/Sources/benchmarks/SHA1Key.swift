internal import ICELite

/// HMAC-SHA1 (RFC 2104, RFC 3174) for the few checks of load clients.
final class SHA1Key: STUNKey {
    private static let blockLength = 64
    private let inner: [UInt8]
    private let outer: [UInt8]

    init(password: [UInt8]) {
        let key = password + [UInt8](repeating: 0, count: Self.blockLength - password.count)
        inner = key.map { $0 ^ 0x36 }
        outer = key.map { $0 ^ 0x5c }
    }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        var message = inner + Self.bytes(of: word)
        for index in bytes.indices { message.append(bytes[index]) }
        return STUNIntegrity(Self.hash(outer + Self.hash(message)).span)
    }

    private static func bytes(of word: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }

    static func hash(_ message: [UInt8]) -> [UInt8] {
        let bits = UInt64(message.count) * 8
        var padded = message + [0x80]
        while padded.count % blockLength != blockLength - 8 { padded.append(0) }
        padded += bytes(of: UInt32(truncatingIfNeeded: bits >> 32)) + bytes(of: UInt32(truncatingIfNeeded: bits))
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
        for start in stride(from: 0, to: padded.count, by: blockLength) {
            add(Array(padded[start..<(start + blockLength)]), to: &state)
        }
        return state.flatMap(bytes)
    }

    private static func add(_ block: [UInt8], to state: inout [UInt32]) {
        var words = (0..<16).map { place in
            block[(4 * place)..<(4 * place + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for place in 16..<80 {
            let word = words[place - 3] ^ words[place - 8] ^ words[place - 14] ^ words[place - 16]
            words.append(rotate(word, 1))
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for place in 0..<80 {
            let (mix, constant): (UInt32, UInt32) =
                switch place {
                case 0..<20: (b & c | ~b & d, 0x5a82_7999)
                case 20..<40: (b ^ c ^ d, 0x6ed9_eba1)
                case 40..<60: (b & c | b & d | c & d, 0x8f1b_bcdc)
                default: (b ^ c ^ d, 0xca62_c1d6)
                }
            (a, b, c, d, e) = (rotate(a, 5) &+ mix &+ e &+ constant &+ words[place], a, rotate(b, 30), c, d)
        }
        for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
    }

    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
}
