internal import COpenSSL
internal import Glibc

/// HMAC-SHA1 (RFC 2104) with one key, computed without an allocation.
///
/// Each message begins with a copy of the state that has hashed the padded key. OpenSSL 3.0's `EVP_MAC` and `EVP_MD`
/// allocate for each message, so this uses its SHA-1 directly.
final class HMACSHA1 {
    private static let blockLength = 64
    private static let sumLength = 20

    /// After the key XOR the inner pad, after the key XOR the outer pad, and of the message.
    private let states = UnsafeMutablePointer<SHA_CTX>.allocate(capacity: 3)
    /// The result of the last message.
    private let sum = UnsafeMutablePointer<UInt8>.allocate(capacity: sumLength)

    /// The key has at most 64 bytes.
    init(key: [UInt8]) {
        precondition(key.count <= Self.blockLength)
        states.initialize(repeating: SHA_CTX(), count: 3)
        sum.initialize(repeating: 0, count: Self.sumLength)
        for (place, pad) in [UInt8(0x36), 0x5c].enumerated() {
            var block = [UInt8](repeating: pad, count: Self.blockLength)
            for (index, byte) in key.enumerated() { block[index] ^= byte }
            sha1_init(states + place)
            sha1_update(states + place, block, block.count)
            wipe(&block)
        }
    }

    deinit {
        explicit_bzero(states, 3 * MemoryLayout<SHA_CTX>.stride)
        states.deallocate()
        explicit_bzero(sum, Self.sumLength)
        sum.deallocate()
    }

    /// Writes the first `tagLength` bytes of the sum over a message and, if given, a big-endian word behind it.
    func writeTag(
        to tag: UnsafeMutablePointer<UInt8>, count tagLength: Int, over message: UnsafePointer<UInt8>, count: Int,
        and word: UInt32?
    ) {
        add(message, count: count, and: word)
        tag.update(from: sum, count: tagLength)
    }

    /// Whether a tag is the first bytes of the sum over a message and, if given, a big-endian word behind it. Compares in
    /// constant time.
    func verify(
        _ tag: UnsafePointer<UInt8>, count tagLength: Int, over message: UnsafePointer<UInt8>, count: Int,
        and word: UInt32?
    ) -> Bool {
        add(message, count: count, and: word)
        return CRYPTO_memcmp(sum, tag, tagLength) == 0
    }

    /// The sum over a big-endian word and a message behind it, valid until the next call.
    func sum(of word: UInt32, and message: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        begin()
        withUnsafeBytes(of: word.bigEndian) { sha1_update(states + 2, $0.baseAddress, $0.count) }
        sha1_update(states + 2, message.baseAddress, message.count)
        finish()
        return UnsafeBufferPointer(start: sum, count: Self.sumLength)
    }

    private func add(_ message: UnsafePointer<UInt8>, count: Int, and word: UInt32?) {
        begin()
        sha1_update(states + 2, message, count)
        if let word { withUnsafeBytes(of: word.bigEndian) { sha1_update(states + 2, $0.baseAddress, $0.count) } }
        finish()
    }

    private func begin() { states[2] = states[0] }

    private func finish() {
        let state = states + 2
        sha1_final(sum, state)
        state.pointee = states[1]
        sha1_update(state, sum, Self.sumLength)
        sha1_final(sum, state)
    }
}
