internal import PeerSession
internal import RTP

/// The library that encrypts a peer's packets.
package enum SRTPLibrary: Sendable, CaseIterable {
    case openSSL
    case libSRTP2
}

/// The SRTP engine of a peer, with the library of its configuration.
///
/// Not an existential: the path of a packet has one branch instead of a call through a table.
final class PeerSRTP: SRTPEngine {
    private enum Engine {
        case openSSL(OpenSSLSRTP)
        case libSRTP2(LibSRTP)
    }

    private let engine: Engine

    convenience init(keys: inout SRTPKeys) throws { try self.init(keys: &keys, library: .openSSL) }

    init(keys: inout SRTPKeys, library: SRTPLibrary) throws {
        engine =
            switch library {
            case .openSSL: .openSSL(try OpenSSLSRTP(keys: &keys))
            case .libSRTP2: .libSRTP2(try LibSRTP(keys: &keys))
            }
    }

    func protectRTP(_ packet: inout PacketBuffer) -> Bool {
        switch engine {
        case .openSSL(let engine): engine.protectRTP(&packet)
        case .libSRTP2(let engine): engine.protectRTP(&packet)
        }
    }

    func protectRTP(_ head: inout PacketBuffer, _ rest: Span<UInt8>, into batch: inout DatagramBatch) -> Bool {
        switch engine {
        case .openSSL(let engine): engine.protectRTP(&head, rest, into: &batch)
        case .libSRTP2(let engine): engine.protectRTP(&head, rest, into: &batch)
        }
    }

    func protectRTCP(_ packet: inout PacketBuffer) -> Bool {
        switch engine {
        case .openSSL(let engine): engine.protectRTCP(&packet)
        case .libSRTP2(let engine): engine.protectRTCP(&packet)
        }
    }

    func unprotectRTP(_ packet: inout PacketBuffer) -> Bool {
        switch engine {
        case .openSSL(let engine): engine.unprotectRTP(&packet)
        case .libSRTP2(let engine): engine.unprotectRTP(&packet)
        }
    }

    func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool {
        switch engine {
        case .openSSL(let engine): engine.unprotectRTCP(&packet)
        case .libSRTP2(let engine): engine.unprotectRTCP(&packet)
        }
    }

    func forget(_ received: SSRC) {
        switch engine {
        case .openSSL(let engine): engine.forget(received)
        case .libSRTP2(let engine): engine.forget(received)
        }
    }
}
