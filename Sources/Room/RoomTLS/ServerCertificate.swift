internal import Foundation
internal import Glibc
package import NIOSSL

/// The facts of a server's certificate.
package struct ServerCertificate: Sendable, Equatable {
    /// The certificate itself, in PEM.
    package let pem: String
    /// The names and numeric addresses for which it is valid. A name may begin with `*.`.
    package let names: [String]
    /// From when on it is valid, in seconds since 1970.
    package let begins: Double
    /// Until when it is valid, in seconds since 1970.
    package let expires: Double

    package init(_ certificate: NIOSSLCertificate) {
        pem = (try? certificate.toDERBytes()).map(Self.pem) ?? ""
        names = certificate._subjectAlternativeNames().compactMap(Self.text)
        begins = Double(certificate.notValidBefore)
        expires = Double(certificate.notValidAfter)
    }

    /// Whole days until it expires. Negative after that.
    package func daysLeft(now: Double) -> Int { Int(((expires - now) / 86400).rounded(.down)) }

    /// A day in UTC, such as 2026-11-29.
    package static func day(_ seconds: Double) -> String {
        String(Date(timeIntervalSince1970: seconds).ISO8601Format().prefix(10))
    }

    private static func pem(_ der: [UInt8]) -> String {
        let text = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
    }

    private static func text(_ name: _SubjectAlternativeName) -> String? {
        let bytes = Array(name.contents)
        switch name.nameType {
        case .dnsName: return String(decoding: bytes, as: UTF8.self)
        case .ipAddress: return address(bytes)
        default: return nil
        }
    }

    private static func address(_ bytes: [UInt8]) -> String? {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16,
            inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil
        else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
