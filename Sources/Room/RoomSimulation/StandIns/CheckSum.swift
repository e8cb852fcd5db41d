internal import ICELite
internal import RTP

/// A stand-in for the HMAC of ICE's checks: depends on the password and on every byte, and is not secure.
final class CheckSum: STUNKey {
    private let seed: UInt64

    init(password: [UInt8]) { seed = password.span.mixed(from: 0) }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        let mixed = bytes.mixed(from: seed ^ UInt64(word))
        let sum = (0..<20).map { UInt8(truncatingIfNeeded: mixed >> (8 * ($0 % 8))) }
        return STUNIntegrity(sum.span)
    }
}
