/// A candidate attribute that may be tried (RFC 8839, section 5.1): `candidate:<foundation> <component> <transport>
/// <priority> <address> <port> typ <type> ...`.
package struct CandidateAttribute: Equatable {
    /// Longer attributes are refused without parsing.
    static let maximumLength = 512

    /// The attribute, made of the fields that were checked. libnice reads other fields than these in some texts of a
    /// stranger: with two spaces in a row, another address.
    var text: String
    /// In one spelling, however the candidate spells it.
    var address: String
    var port: UInt16
    var scope: AddressScope

    package enum Refusal: Error, Equatable {
        /// The attribute does not follow the grammar.
        case malformed
        /// TCP, or a separate component for RTCP. We offer neither.
        case unsupported
        /// A multicast DNS name that hides the address (Chromium without device permission). Its host reaches us by our
        /// own candidates.
        case hidden
        /// Not a host's address: unspecified, multicast or broadcast.
        case unreachable
        /// A port below 1024, which peers do not use by chance but other services do. Like browsers, we allow 80 and
        /// 443 at public addresses, for relays and servers behind firewalls.
        case privileged
    }

    /// Parses `candidate:...`, with or without `a=`.
    package init(_ attribute: String) throws(Refusal) {
        guard attribute.utf8.count <= Self.maximumLength else { throw .malformed }
        let text = attribute.hasPrefix("a=") ? String(attribute.dropFirst(2)) : attribute
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard text.hasPrefix("candidate:"), parts.count >= 8, parts[6] == "typ",
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }),
            (11...42).contains(parts[0].utf8.count), let priority = UInt32(parts[3]), let component = UInt16(parts[1]),
            let port = UInt16(parts[5]), ["host", "srflx", "prflx", "relay"].contains(parts[7])
        else { throw .malformed }
        guard component == 1, parts[2].lowercased() == "udp" else { throw .unsupported }
        let address = String(parts[4])
        guard !address.lowercased().hasSuffix(".local") else { throw .hidden }
        guard let scope = AddressScope(address), let canonical = AddressScope.canonical(address) else {
            throw .malformed
        }
        guard scope != .unusable else { throw .unreachable }
        guard port >= 1024 || (scope == .global && (port == 80 || port == 443)) else { throw .privileged }
        self.text = "\(parts[0]) 1 udp \(priority) \(canonical) \(port) typ \(parts[7])"
        self.address = canonical
        self.port = port
        self.scope = scope
    }
}
