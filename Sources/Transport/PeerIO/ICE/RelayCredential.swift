internal import COpenSSL

/// Passwords of TURN users that expire, as coturn checks them with `use-auth-secret` (draft-uberti-behave-turn-rest-00,
/// section 2.2).
package enum RelayCredential {
    /// HMAC-SHA1 of the user, which begins with the time at which it expires, under the secret that both servers have.
    package static func sum(of user: String, secret: String) -> [UInt8] {
        var key = Array(secret.utf8)
        // RFC 2104, section 2.
        if key.count > 64 {
            var short = [UInt8](repeating: 0, count: 20)
            EVP_Digest(key, key.count, &short, nil, EVP_sha1(), nil)
            key = short
        }
        var sum = [UInt8](repeating: 0, count: 20)
        let message = Array(user.utf8)
        HMACSHA1(key: key).writeTag(to: &sum, count: sum.count, over: message, count: message.count, and: nil)
        return sum
    }
}
