internal import COpenSSL
internal import Glibc
internal import PeerSession

/// Encrypts or decrypts the packets of one session key, with one OpenSSL context, and without an allocation.
///
/// AEAD is RFC 7714; counter mode with HMAC-SHA1 is RFC 3711. The caller chooses indexes that no packet of the SSRC had,
/// and provides memory for the tag.
final class SRTPCipher {
    enum Purpose {
        case seal
        case open
    }

    let tagLength: Int
    private let cipher: OpaquePointer
    /// Nil for AEAD.
    private let authenticator: HMACSHA1?
    /// The salt as the two halves of the block to which `begin` adds SSRC and index.
    private var salt: (high: UInt64, low: UInt64)
    /// Where the block begins that OpenSSL is given: AEAD's nonce lacks the first two and the last two bytes.
    private let blockOffset: Int

    /// The bytes of an RTCP packet that stay clear: the first header, with the SSRC.
    static let reportHeaderLength = 8
    /// Bytes of the SRTCP index.
    static let reportIndexLength = 4
    /// The bit beside the index that marks an encrypted packet (RFC 3711, section 3.4).
    static let encryptedReport: UInt32 = 1 << 31

    /// `master` is the master key followed by its salt. Nil if OpenSSL fails.
    init?(_ profile: SRTPProfile, master: [UInt8], for use: SRTPSessionKeys.Use, to purpose: Purpose) {
        guard var keys = SRTPSessionKeys(profile, master: master, for: use) else { return nil }
        defer { keys.wipeAll() }
        let isAEAD = keys.authentication.isEmpty
        let authenticator = isAEAD ? nil : HMACSHA1(key: keys.authentication)
        guard let cipher = EVP_CIPHER_CTX_new() else { return nil }
        let function =
            switch profile {
            case .aeadAES128GCM: EVP_aes_128_gcm()
            case .aeadAES256GCM: EVP_aes_256_gcm()
            case .aes128CMSHA1_80: EVP_aes_128_ctr()
            }
        guard EVP_CipherInit_ex(cipher, function, nil, keys.encryption, nil, purpose == .seal ? 1 : 0) == 1 else {
            EVP_CIPHER_CTX_free(cipher)
            return nil
        }
        self.cipher = cipher
        self.authenticator = authenticator
        tagLength = profile.tagLength
        blockOffset = isAEAD ? 2 : 0
        salt = (0, 0)
        for (index, byte) in keys.salt.enumerated() {
            let place = blockOffset + index
            if place < 8 {
                salt.high |= UInt64(byte) << UInt64(56 - 8 * place)
            } else {
                salt.low |= UInt64(byte) << UInt64(120 - 8 * place)
            }
        }
    }

    deinit {
        withUnsafeMutableBytes(of: &salt) { bytes in
            if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
        }
        EVP_CIPHER_CTX_free(cipher)
    }

    // MARK: Packets

    /// Encrypts an RTP packet and writes its tag behind it.
    ///
    /// The packet stands at `packet`, except for its last bytes, which are taken from `rest` and follow the `written`
    /// ones. `rest` must not overlap them. Without a rest, the packet is encrypted in place.
    func sealPacket(
        _ packet: UnsafeMutablePointer<UInt8>, header: Int, written: Int, rest: UnsafeBufferPointer<UInt8>,
        ssrc: UInt32, index: UInt64
    ) -> Bool {
        let count = written + rest.count
        guard begin(ssrc: ssrc, index: index),
            authenticator != nil || associate(packet, count: header),
            crypt(packet + header, to: packet + header, count: written - header),
            crypt(rest.baseAddress, to: packet + written, count: rest.count)
        else { return false }
        guard let authenticator else { return finishSealing(packet + count) }
        authenticator.writeTag(
            to: packet + count, count: tagLength, over: packet, count: count, and: Self.rollover(index))
        return true
    }

    /// Verifies and decrypts in place an RTP packet of `count` bytes whose tag follows.
    func openPacket(
        _ packet: UnsafeMutablePointer<UInt8>, header: Int, count: Int, ssrc: UInt32, index: UInt64
    ) -> Bool {
        if let authenticator {
            guard
                authenticator.verify(
                    packet + count, count: tagLength, over: packet, count: count, and: Self.rollover(index))
            else { return false }
            return begin(ssrc: ssrc, index: index)
                && crypt(packet + header, to: packet + header, count: count - header)
        }
        return begin(ssrc: ssrc, index: index) && expect(packet + count) && associate(packet, count: header)
            && crypt(packet + header, to: packet + header, count: count - header) && finishOpening()
    }

    private static func rollover(_ index: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: index >> 16) }

    // MARK: Reports

    /// Encrypts an RTCP packet in place and writes its tag and its index behind it. AEAD has the tag first.
    func sealReport(_ report: UnsafeMutablePointer<UInt8>, count: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let header = Self.reportHeaderLength
        let word = index | Self.encryptedReport
        guard begin(ssrc: ssrc, index: UInt64(index)),
            authenticator != nil || associate(report, count: header) && associate(word),
            crypt(report + header, to: report + header, count: count - header)
        else { return false }
        let end = report + count
        guard let authenticator else {
            Self.write(word, to: end + tagLength)
            return finishSealing(end)
        }
        Self.write(word, to: end)
        let signed = count + Self.reportIndexLength
        authenticator.writeTag(to: report + signed, count: tagLength, over: report, count: signed, and: nil)
        return true
    }

    /// The word with the index of an encrypted RTCP packet, which has `count` bytes without tag and index.
    func reportWord(_ report: UnsafePointer<UInt8>, count: Int) -> UInt32 {
        let word = report + (authenticator == nil ? count + tagLength : count)
        return UInt32(word[0]) << 24 | UInt32(word[1]) << 16 | UInt32(word[2]) << 8 | UInt32(word[3])
    }

    /// Verifies and decrypts in place an RTCP packet of `count` bytes whose tag and index follow.
    func openReport(_ report: UnsafeMutablePointer<UInt8>, count: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let header = Self.reportHeaderLength
        if let authenticator {
            let signed = count + Self.reportIndexLength
            guard authenticator.verify(report + signed, count: tagLength, over: report, count: signed, and: nil)
            else { return false }
            return begin(ssrc: ssrc, index: UInt64(index))
                && crypt(report + header, to: report + header, count: count - header)
        }
        return begin(ssrc: ssrc, index: UInt64(index)) && expect(report + count)
            && associate(report, count: header) && associate(index | Self.encryptedReport)
            && crypt(report + header, to: report + header, count: count - header) && finishOpening()
    }

    private static func write(_ word: UInt32, to target: UnsafeMutablePointer<UInt8>) {
        target[0] = UInt8(truncatingIfNeeded: word >> 24)
        target[1] = UInt8(truncatingIfNeeded: word >> 16)
        target[2] = UInt8(truncatingIfNeeded: word >> 8)
        target[3] = UInt8(truncatingIfNeeded: word)
    }

    // MARK: OpenSSL

    /// Begins a packet. The nonce of AEAD and the first counter block are made alike (RFC 3711, section 4.1.1; RFC 7714,
    /// sections 8.1 and 9.1): SSRC and index of 48 bits, one after the other, XOR the salt.
    private func begin(ssrc: UInt32, index: UInt64) -> Bool {
        let block = ((salt.high ^ UInt64(ssrc)).bigEndian, (salt.low ^ index << 16).bigEndian)
        return withUnsafeBytes(of: block) { bytes in
            guard let base = bytes.baseAddress else { return false }
            let start = base.assumingMemoryBound(to: UInt8.self) + blockOffset
            return EVP_CipherInit_ex(cipher, nil, nil, nil, start, -1) == 1
        }
    }

    /// Adds clear bytes that the tag protects.
    private func associate(_ bytes: UnsafePointer<UInt8>, count: Int) -> Bool {
        var done: Int32 = 0
        return EVP_CipherUpdate(cipher, nil, &done, bytes, Int32(count)) == 1
    }

    private func associate(_ word: UInt32) -> Bool {
        withUnsafeBytes(of: word.bigEndian) { bytes in
            guard let base = bytes.baseAddress else { return false }
            return associate(base.assumingMemoryBound(to: UInt8.self), count: bytes.count)
        }
    }

    private func crypt(
        _ source: UnsafePointer<UInt8>?, to target: UnsafeMutablePointer<UInt8>, count: Int
    ) -> Bool {
        guard count > 0 else { return count == 0 }
        var done: Int32 = 0
        return EVP_CipherUpdate(cipher, target, &done, source, Int32(count)) == 1 && Int(done) == count
    }

    private func finishSealing(_ tag: UnsafeMutablePointer<UInt8>) -> Bool {
        var done: Int32 = 0
        return EVP_CipherFinal_ex(cipher, tag, &done) == 1
            && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(tagLength), tag) == 1
    }

    private func expect(_ tag: UnsafeMutablePointer<UInt8>) -> Bool {
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), tag) == 1
    }

    /// Whether the tag is right. OpenSSL compares in constant time.
    private func finishOpening() -> Bool {
        var done: Int32 = 0
        var nothing: UInt8 = 0
        return EVP_CipherFinal_ex(cipher, &nothing, &done) == 1
    }
}
