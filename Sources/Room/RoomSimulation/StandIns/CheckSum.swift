internal import ICELite
internal import RTP

/// A stand-in for the HMAC of ICE's checks: depends on the password and on every byte, and is not secure.
final class CheckSum: STUNKey {
    private let seed: UInt64

    init(password: [UInt8]) { seed = Self.mix(password.span, from: 0) }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        let mixed = Self.mix(bytes, from: seed ^ UInt64(word))
        let sum = (0..<20).map { UInt8(truncatingIfNeeded: mixed >> (8 * ($0 % 8))) }
        return STUNIntegrity(sum.span)
    }

    private static func mix(_ bytes: Span<UInt8>, from seed: UInt64) -> UInt64 {
        var mixed = seed ^ 0xcbf2_9ce4_8422_2325
        for index in bytes.indices { mixed = (mixed ^ UInt64(bytes[index])) &* 0x0100_0000_01b3 }
        return mixed
    }
}
