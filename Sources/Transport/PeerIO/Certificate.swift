internal import COpenSSL
package import PeerSession
package import RTP

/// A self-signed certificate with its private key (ECDSA on P-256), created once for a process or an identity and
/// shared by its peers. It only proves that its fingerprint is the signalled one (RFC 8122).
package final class Certificate: @unchecked Sendable {
    // Sendable by hand: nothing changes after init. OpenSSL counts references to contexts, certificates and keys
    // atomically, and creating an SSL from a shared SSL_CTX is safe on any thread.

    /// SHA-256 of the certificate, for `a=fingerprint`.
    package let fingerprint: Fingerprint

    /// The configuration of all handshakes with this certificate.
    let context: OpaquePointer

    /// Forward-secret suites with AEAD (RFC 8827, section 6.5). Our own key is ECDSA; a peer that acts as the server
    /// may have an RSA key.
    static let cipherSuites =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:"
        + "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"

    /// Creates a key and signs a certificate for it, in about 0.1 ms.
    ///
    /// `profiles` are the offered and accepted SRTP profiles, in order of preference. As a server, the first one that
    /// the client offers is used (RFC 5764, section 4.1.2).
    package init(profiles: [SRTPProfile] = [.aeadAES128GCM, .aes128CMSHA1_80]) throws(TransportError) {
        guard let key = Self.makeKey() else { throw Self.failure("OpenSSL created no ECDSA key") }
        defer { EVP_PKEY_free(key) }
        guard let certificate = Self.makeCertificate(for: key) else { throw Self.failure("OpenSSL could not sign it") }
        defer { X509_free(certificate) }
        guard let fingerprint = Self.digest(of: certificate, algorithm: "sha-256") else {
            throw Self.failure("OpenSSL computed no digest")
        }
        guard let context = SSL_CTX_new(DTLS_method()) else { throw Self.failure("OpenSSL has no DTLS") }
        self.fingerprint = fingerprint
        self.context = context
        let names = profiles.map { "SRTP_" + $0.rawValue }.joined(separator: ":")
        guard ssl_ctx_set_dtls_1_2_only(context) == 1,
            SSL_CTX_set_cipher_list(context, Self.cipherSuites) == 1,
            SSL_CTX_use_certificate(context, certificate) == 1,
            SSL_CTX_use_PrivateKey(context, key) == 1,
            SSL_CTX_set_tlsext_use_srtp(context, names) == 0
        else { throw Self.failure("OpenSSL refused it") }
        _ = SSL_CTX_set_options(context, ssl_op_dtls_defaults())
        ssl_ctx_forget_sessions(context)
        ssl_ctx_read_ahead(context)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        SSL_CTX_set_cert_verify_callback(context, verifyCertificate, nil)
    }

    deinit {
        SSL_CTX_free(context)
    }

    /// The digest of a certificate by an algorithm of RFC 8122, section 5. Nil if it is unknown or weaker than SHA-256,
    /// and so cannot prove an identity.
    static func digest(of certificate: OpaquePointer, algorithm: String) -> Fingerprint? {
        let function =
            switch algorithm {
            case "sha-256": EVP_sha256()
            case "sha-384": EVP_sha384()
            case "sha-512": EVP_sha512()
            default: OpaquePointer?.none
            }
        guard let function else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        var length: UInt32 = 0
        guard X509_digest(certificate, function, &bytes, &length) == 1 else { return nil }
        return Fingerprint(algorithm: algorithm, digest: Array(bytes.prefix(Int(length))))
    }

    private static func makeKey() -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1
        else { return nil }
        return key
    }

    static func makeCertificate(for key: OpaquePointer) -> OpaquePointer? {
        guard let certificate = X509_new() else { return nil }
        // Valid from a day ago, because clocks differ, for a year: it lives as long as the process.
        let day = 24 * 60 * 60
        let serial: UInt64 = .random(in: 1...UInt64(Int64.max))
        let isComplete =
            X509_set_version(certificate, 2) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), 365 * day) != nil
            && X509_set_pubkey(certificate, key) == 1
            && X509_NAME_add_entry_by_txt(
                X509_get_subject_name(certificate), "CN", MBSTRING_ASC, "connectlive", -1, -1, 0) == 1
            && X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1
            && X509_sign(certificate, key, EVP_sha256()) > 0
        guard isComplete else {
            X509_free(certificate)
            return nil
        }
        return certificate
    }

    private static func failure(_ reason: String) -> TransportError {
        TransportError(
            code: "transport.certificate", message: "The peer's certificate could not be created: \(reason).")
    }
}
