package import ICELite

/// Signs and verifies connectivity checks with OpenSSL's SHA-1.
package final class OpenSSLSTUNKey: STUNKey {
    private let hmac: HMACSHA1

    package init(password: [UInt8]) { hmac = HMACSHA1(key: password) }

    package func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        bytes.withUnsafeBufferPointer { STUNIntegrity(hmac.sum(of: word, and: $0).span) }
    }
}
