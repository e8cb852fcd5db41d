internal import RTP
internal import RoomProtocol
internal import ServerCore
internal import Synchronization

/// The valid access tokens: 32 random bytes each, stored only here.
///
/// A token is opaque, so it has no algorithm, key id, issuer or audience to forge. Used on NIO's threads and on the
/// rooms' loops. Each call is a dictionary lookup under a mutex, and none is made for a packet.
final class AccessTokens: Sendable {
    /// The rooms that a token permits.
    enum Scope: Sendable, Equatable {
        case everyRoom
        case oneRoom(RoomName)
    }

    private struct Record {
        var text: [UInt8]
        var scope: Scope
        var ends: MonotonicTime
    }

    static let signInLifetime = TimeInterval.seconds(3600)
    static let pageLifetime = TimeInterval.seconds(600)

    private let capacity: Int
    /// The limit for tokens of pages. Anybody can request those on an open server, so they must not use up the others.
    private let pageCapacity: Int
    /// By the first 12 characters, so that a lookup does not compare secrets. The rest is compared in constant time.
    private let records = Mutex<[String: Record]>([:])

    /// - Parameter capacity: how many tokens may exist. More are refused with `server.full`.
    init(capacity: Int = 10_000) {
        self.capacity = capacity
        pageCapacity = capacity / 2
    }

    var count: Int { records.withLock { $0.count } }

    func issue(_ scope: Scope, lifetime: TimeInterval, now: MonotonicTime) throws(RoomError) -> AccessGrant {
        let text = RandomToken.text(bytes: 32)
        let admitted = records.withLock { records in
            if records.count >= capacity { records = records.filter { $0.value.ends > now } }
            guard records.count < capacity else { return false }
            if scope != .everyRoom, records.count >= pageCapacity {
                // A page uses its token within a second, so the oldest one is the least useful.
                let pages = records.filter { $0.value.scope != .everyRoom && $0.value.ends > now }
                if pages.count >= pageCapacity, let oldest = pages.min(by: { $0.value.ends < $1.value.ends }) {
                    records[oldest.key] = nil
                }
            }
            records[Self.key(text)] = Record(text: Array(text.utf8), scope: scope, ends: now + lifetime)
            return true
        }
        guard admitted else {
            throw RoomError(
                .serverFull, "The server has \(capacity) access tokens, which is the limit. Sign out, or try later.")
        }
        return AccessGrant(accessToken: text, expiresIn: Int(lifetime.nanoseconds / 1_000_000_000))
    }

    /// The scope of a token. Throws -11005 if it is unknown, expired or revoked.
    func scope(of token: String, now: MonotonicTime) throws(RoomError) -> Scope {
        let scope: Scope? = records.withLock { records in
            guard let record = records[Self.key(token)], constantTimeEqual(record.text, Array(token.utf8)) else {
                return nil
            }
            guard record.ends > now else {
                records[Self.key(token)] = nil
                return nil
            }
            return record.scope
        }
        guard let scope else {
            throw RoomError(.tokenInvalid, "The access token is unknown or has expired. Sign in again.")
        }
        return scope
    }

    /// Revokes a token. Returns false if it is unknown.
    func revoke(_ token: String) -> Bool {
        records.withLock { records in
            guard let record = records[Self.key(token)], constantTimeEqual(record.text, Array(token.utf8)) else {
                return false
            }
            records[Self.key(token)] = nil
            return true
        }
    }

    private static func key(_ token: String) -> String { String(token.prefix(12)) }
}
