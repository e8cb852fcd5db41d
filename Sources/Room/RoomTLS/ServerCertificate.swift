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
        self.init(certificate, names: certificate._subjectAlternativeNames().compactMap(Self.text))
    }

    /// For tests: with other names.
    package init(_ certificate: NIOSSLCertificate, names: [String]) {
        pem = (try? certificate.toDERBytes()).map(Self.pem) ?? ""
        self.names = names
        begins = Double(certificate.notValidBefore)
        expires = Double(certificate.notValidAfter)
    }

    /// Whether a certificate is for a host name (RFC 9525, section 6.3): by one of its alternative names alone, not by an
    /// address or its common name. A name `*.rest` is for all names that have one label before the rest.
    package static func isFor(_ host: String, _ certificate: NIOSSLCertificate) -> Bool {
        let host = plain(Array(host.utf8))
        guard !host.isEmpty else { return false }
        let rest = host.firstIndex(of: period).flatMap { $0 > host.startIndex ? host[$0...] : nil }
        return certificate._subjectAlternativeNames().contains { name in
            guard name.nameType == .dnsName else { return false }
            let name = plain(Array(name.contents))
            if name.first == asterisk { return rest.map { name.dropFirst() == $0 } ?? false }
            return name == host
        }
    }

    private static let period = UInt8(ascii: ".")
    private static let asterisk = UInt8(ascii: "*")

    /// A name in small letters, without the period of the root.
    private static func plain(_ name: [UInt8]) -> ArraySlice<UInt8> {
        let small = name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
        return small.last == period ? small.dropLast() : small[...]
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
