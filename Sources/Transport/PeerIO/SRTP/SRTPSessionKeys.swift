internal import COpenSSL
internal import Glibc
internal import PeerSession

/// The session keys of one direction for RTP or for RTCP, derived from the master key (RFC 3711, section 4.3; RFC 7714,
/// section 11).
struct SRTPSessionKeys: ~Copyable {
    enum Use: UInt8 {
        /// The values are the labels of the encryption keys; those of authentication keys and salts follow.
        case packets = 0
        case reports = 3
    }

    private(set) var encryption: [UInt8]
    /// Empty for AEAD.
    private(set) var authentication: [UInt8]
    private(set) var salt: [UInt8]

    /// `master` is the master key followed by its salt. Nil if OpenSSL fails.
    init?(_ profile: SRTPProfile, master: [UInt8], for use: Use) {
        guard master.count == profile.keyLength + profile.saltLength,
            let cipher = EVP_CIPHER_CTX_new()
        else { return nil }
        defer { EVP_CIPHER_CTX_free(cipher) }
        let function = profile.keyLength == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
        guard EVP_EncryptInit_ex(cipher, function, nil, master, nil) == 1 else { return nil }

        // The salt without the leading key. RFC 7714 pads its 96 bits to 112 with zeros at the end.
        let saltBytes = master[profile.keyLength...]
        func derive(label: UInt8, count: Int) -> [UInt8]? {
            guard count > 0 else { return [] }
            // The initial counter block: the salt XOR the label in byte 7; the index is 0, because keys are derived
            // once. The keystream is the key.
            var block = [UInt8](repeating: 0, count: 16)
            for (index, byte) in saltBytes.enumerated() { block[index] = byte }
            block[7] ^= label
            defer { wipe(&block) }
            let zeros = [UInt8](repeating: 0, count: count)
            var key = zeros
            var written: Int32 = 0
            guard EVP_EncryptInit_ex(cipher, nil, nil, nil, block) == 1,
                EVP_EncryptUpdate(cipher, &key, &written, zeros, Int32(count)) == 1, Int(written) == count
            else { return nil }
            return key
        }
        let label = use.rawValue
        guard let encryption = derive(label: label, count: profile.keyLength),
            let authentication = derive(label: label + 1, count: profile.authenticationKeyLength),
            let salt = derive(label: label + 2, count: profile.saltLength)
        else { return nil }
        self.encryption = encryption
        self.authentication = authentication
        self.salt = salt
    }

    /// Overwrites the keys, once the ciphers have copied them.
    mutating func wipeAll() {
        wipe(&encryption)
        wipe(&authentication)
        wipe(&salt)
    }
}

extension SRTPProfile {
    /// Bytes of the key of HMAC-SHA1. AEAD has none.
    var authenticationKeyLength: Int { self == .aes128CMSHA1_80 ? 20 : 0 }

    /// Bytes of the tag of RTP and of RTCP.
    var tagLength: Int { self == .aes128CMSHA1_80 ? 10 : 16 }
}

/// Overwrites a key that is no longer needed. In place if the caller holds the only reference to the array.
func wipe(_ key: inout [UInt8]) {
    key.withUnsafeMutableBytes { bytes in
        if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
    }
}
