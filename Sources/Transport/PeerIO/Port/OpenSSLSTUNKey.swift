internal import ICELite

/// Signs and verifies connectivity checks with OpenSSL's SHA-1.
final class OpenSSLSTUNKey: STUNKey {
    private let hmac: HMACSHA1

    init(password: [UInt8]) { hmac = HMACSHA1(key: password) }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        bytes.withUnsafeBufferPointer { STUNIntegrity(hmac.sum(of: word, and: $0).span) }
    }
}
