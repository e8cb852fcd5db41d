internal import RTP
internal import RoomProtocol
internal import ServerCore
internal import Synchronization

/// Limits what one address may ask of sign-in and of the page's tokens. Called on NIO's threads; it is told the time.
final class AccessLimits: Sendable {
    /// Wrong secrets of one address: so many immediately, and one for each interval.
    static let wrongSecrets = Pace(burst: 10, interval: .seconds(10))
    /// Page tokens for one address, which an office may share.
    static let pageTokens = Pace(burst: 200, interval: .milliseconds(500))

    /// TLS handshakes of one address. One takes up to a millisecond of the thread that carries the signalling of all.
    static let handshakes = Pace(burst: 500, interval: .milliseconds(20))

    /// A participant, and an address from which somebody wants to be it.
    private struct Guess: Hashable {
        let participant: String
        let address: ClientAddress
    }

    private let secrets = Mutex(PaceTable<ClientAddress>(wrongSecrets))
    private let guesses = Mutex(PaceTable<Guess>(wrongSecrets))
    private let greetings = Mutex(PaceTable<ClientAddress>(handshakes))
    private let tokens = Mutex(PaceTable<ClientAddress>(pageTokens))

    /// Throws before the secret is compared, so that a right guess among too many is not found either.
    func admitSignIn(from address: ClientAddress, now: MonotonicTime) throws(RoomError) {
        guard let delay = secrets.withLock({ $0.delay(of: address, now: now) }) else { return }
        throw Self.error("Sign-in refuses this address: it sent too many wrong secrets.", delay)
    }

    /// The same for the secret of a participant. Wrong ones do not affect others at the address, nor the participant at
    /// another one: an office may share an address, and everybody in a room knows the ids.
    func admitGuess(at participant: String, from address: ClientAddress, now: MonotonicTime) throws(RoomError) {
        let guess = Guess(participant: participant, address: address)
        guard let delay = guesses.withLock({ $0.delay(of: guess, now: now) }) else { return }
        throw Self.error("This address sent too many wrong secrets for the participant.", delay)
    }

    /// - Parameter participant: one that exists.
    func countGuess(at participant: String, from address: ClientAddress, now: MonotonicTime) {
        guard !address.isLoopback else { return }
        guesses.withLock { $0.count(Guess(participant: participant, address: address), now: now) }
    }

    func countWrongSecret(from address: ClientAddress, now: MonotonicTime) {
        guard !address.isLoopback else { return }
        secrets.withLock { $0.count(address, now: now) }
    }

    /// Counts a TLS handshake. False if the address makes too many.
    func admitHandshake(from address: ClientAddress, now: MonotonicTime) -> Bool {
        guard !address.isLoopback else { return true }
        return greetings.withLock { greetings in
            guard greetings.delay(of: address, now: now) == nil else { return false }
            greetings.count(address, now: now)
            return true
        }
    }

    func admitPageToken(for address: ClientAddress, now: MonotonicTime) throws(RoomError) {
        guard !address.isLoopback else { return }
        let delay = tokens.withLock { tokens in
            let delay = tokens.delay(of: address, now: now)
            if delay == nil { tokens.count(address, now: now) }
            return delay
        }
        if let delay { throw Self.error("The server issues no more tokens to this address.", delay) }
    }

    private static func error(_ sentence: String, _ delay: TimeInterval) -> RoomError {
        RoomError(.tooManyRequests, "\(sentence) Try again in \(Int(delay.seconds.rounded(.up))) s.")
    }
}
