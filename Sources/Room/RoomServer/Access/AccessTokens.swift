internal import RTP
internal import RoomProtocol
internal import Synchronization

/// The access tokens that are good now: 32 random bytes each, kept here and nowhere else.
///
/// A token is opaque, so there is nothing in it to forge: no algorithm, key id, issuer or audience to confuse.
/// Asked from NIO's threads and from the rooms' loops; each call is a dictionary look-up under a mutex, none is made
/// for a packet.
final class AccessTokens: Sendable {
    /// What a token opens.
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
    /// Tokens of pages, which anybody may ask for on an open server: they must not use up what sign-ins need.
    private let pageCapacity: Int
    /// By the first 12 characters, so that a look-up need not compare secrets; the rest is compared in constant time.
    private let records = Mutex<[String: Record]>([:])

    /// - Parameter capacity: how many tokens may be alive; more are refused with `server.full`.
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
                guard records.values.count(where: { $0.scope != .everyRoom && $0.ends > now }) < pageCapacity else {
                    return false
                }
            }
            records[Self.key(text)] = Record(text: Array(text.utf8), scope: scope, ends: now + lifetime)
            return true
        }
        guard admitted else {
            throw RoomError(
                .serverFull, "The server holds \(capacity) access tokens and takes no more: sign out or try later.")
        }
        return AccessGrant(accessToken: text, expiresIn: Int(lifetime.nanoseconds / 1_000_000_000))
    }

    /// What the token opens; refuses with -11005 one that is unknown, ended or revoked.
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
            throw RoomError(.tokenInvalid, "The access token is unknown or has ended: sign in again.")
        }
        return scope
    }

    /// Ends a token. False when it was not one.
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
