public import RTP

/// The reason why a datagram had no effect.
public enum ICEIgnored: Int, Sendable, CaseIterable {
    /// The first byte is of no protocol that a session carries (RFC 7983, section 7), or the datagram is empty.
    case unknownProtocol
    /// DTLS or media from a pair that passed no authenticated check.
    case unknownAddress
    /// STUN whose lengths do not fit, or longer than `PacketBuffer.capacity`.
    case malformed
    /// STUN that is not a Binding request. This end sends no requests, so it expects no response.
    case notCheck
    /// A check for a session that this end does not have, or no longer has.
    case unknownUfrag
    /// A check whose FINGERPRINT is missing or wrong.
    case badFingerprint
    /// A check whose MESSAGE-INTEGRITY is missing or wrong.
    case unauthenticated
    /// An authenticated check from another ufrag than that of the peer's description.
    case unknownPeer
    /// An authenticated check from the selected pair of another session.
    case addressInUse
}

/// The meaning of a datagram for the owner of the socket.
public enum ICEReceived: Sendable, Equatable {
    /// DTLS, SRTP or SRTCP of a session.
    case media(ICESessionID)
    /// A check of a session. The answer is to be sent from the address where the check arrived to the one it came from.
    ///
    /// - `selected`: Whether the session has another selected pair than before, to be read with `path(of:)`.
    case check(ICESessionID, selected: Bool)
    /// A datagram for another agent of the port, by that agent's place.
    case elsewhere(Int)
    /// Nothing to do. Counted.
    case ignored(ICEIgnored)
}

/// The pair on which a session sends.
public struct ICEPath: Sendable, Equatable {
    public let pair: AddressPair
    /// How many ICE restarts the peer has completed.
    public let generation: Int
}

/// ICE-lite (RFC 8445, section 2.5) for many sessions on one port: the server's end, which answers checks and sends none.
///
/// It has no clock, socket, thread or lock. Its owner passes each datagram with the time, which never goes back, sends the
/// answers, and asks `nextExpired` at `nextTimeout`. One owner, one thread.
///
/// A check finds its session by the ufrag that it is addressed to. Other datagrams find theirs by the pair of addresses,
/// from which an authenticated check must have arrived. A check is authenticated by FINGERPRINT, MESSAGE-INTEGRITY and,
/// once it is known, the peer's ufrag. Other checks get no answer at all (not even 400 and 401 of RFC 8489, section 9.1.3):
/// their source address can be forged, and an answer would reach a third party.
///
/// The peer is always the controlling end. A session sends only on the pair that the peer nominates with USE-CANDIDATE
/// (RFC 8445, section 7.3.2). If it nominates several, one of these holds:
/// * A peer that has checked any pair without nominating it means its last nomination.
/// * Of a peer whose checks all nominate, the highest PRIORITY counts (RFC 5245, section 8.1.1.2). A lower one counts once
///   the selected pair had no check for `nominationHold`.
///
/// A datagram costs the same for any number of sessions. One that is not authenticated changes nothing but a counter, and
/// allocates nothing.
///
/// Several agents can share a port, each with sessions and an owner of its own. A ufrag names its agent's place, so that
/// each agent can tell to which one a check belongs. An agent that answers a check that another one received calls the
/// other one's `lease`, which then knows the owner of the pair.
public struct ICELiteAgent<Key: STUNKey> {
    /// The most pairs of addresses of a session. A further one replaces the pair whose last check is the oldest.
    public static var pairLimit: Int { 8 }
    /// The time without checks after which a nomination with a lower priority replaces the selected pair. Peers check a
    /// pair in use every 5 s, give or take 20 % (RFC 7675, section 5.1).
    public static var nominationHold: TimeInterval { .seconds(6) }

    /// The time after a check during which no other session takes over the pair that it leased: two intervals between
    /// checks, with their 20 %. A peer that uses its socket for another session waits that long.
    public static var leaseHold: TimeInterval { .seconds(12) }

    private let consent: TimeInterval
    private let place: Int
    private let agents: Int
    private(set) var sessions = SessionTable<Key>()
    /// The session of each local ufrag: one per session, two during an ICE restart.
    private var ufrags: [LocalUfrag: Int] = [:]
    /// The session of each checked pair: at most `pairLimit` per session.
    private var owners: PairTable
    private var ignored = [Int](repeating: 0, count: ICEIgnored.allCases.count)

    /// - Parameters:
    ///   - consent: The time without authenticated checks after which a selected pair expires (RFC 7675, section 5.1).
    ///   - place: The agent's place among those of the port, from 0.
    ///   - agents: How many agents the port has, at most `ICECredentials.places`.
    public init(consent: TimeInterval = .seconds(30), place: Int = 0, of agents: Int = 1) {
        precondition((0..<agents).contains(place) && agents <= ICECredentials.places, "no such place")
        self.consent = consent
        self.place = place
        self.agents = agents
        owners = PairTable(term: consent)
    }

    /// How many sessions there are.
    public var count: Int { sessions.count }
    /// How many pairs of addresses lead to a session.
    public var pairCount: Int { owners.sessionPairs }

    /// How many datagrams were ignored for a reason.
    public func count(of reason: ICEIgnored) -> Int { ignored[reason.rawValue] }

    // MARK: Sessions

    /// Adds a session, which waits for checks without a deadline. Returns nil if another session has this ufrag.
    public mutating func add(_ credentials: ICECredentials) -> ICESessionID? {
        guard let generation = generation(0, credentials) else { return nil }
        let session = sessions.add(generation)
        ufrags[generation.ufrag] = session.index
        return session
    }

    /// Begins an ICE restart with new credentials (RFC 8445, section 9). Returns false if a session has this ufrag, or if
    /// this session was removed.
    ///
    /// The selected pair and the previous credentials stay until the peer nominates a pair with the new ones. Another
    /// restart before that replaces the new ones.
    public mutating func restart(_ session: ICESessionID, _ credentials: ICECredentials) -> Bool {
        guard let record = sessions.record(of: session), let current = record.current,
            let generation = generation(current.number + 1, credentials)
        else { return false }
        if let replaced = record.next { ufrags[replaced.ufrag] = nil }
        sessions[session.index].next = generation
        ufrags[generation.ufrag] = session.index
        return true
    }

    /// Sets the ufrag of the peer's description for the newest credentials. Checks of another one are ignored from then
    /// on. The peer's password is not needed, because this end sends no checks.
    public mutating func setRemoteUfrag(_ ufrag: String, of session: ICESessionID) {
        guard let record = sessions.record(of: session) else { return }
        let bytes = Array(ufrag.utf8)
        if record.next != nil {
            sessions[session.index].next?.remoteUfrag = bytes
        } else {
            sessions[session.index].current?.remoteUfrag = bytes
        }
    }

    /// Removes a session with its credentials and addresses. Ignores one that was removed.
    public mutating func remove(_ session: ICESessionID) {
        guard let record = sessions.record(of: session) else { return }
        dropPairs(of: session.index)
        for generation in [record.current, record.next] {
            if let generation { ufrags[generation.ufrag] = nil }
        }
        sessions.remove(session.index)
    }

    /// The pair on which a session sends. Nil before the first nomination, and after the pair has expired.
    public func path(of session: ICESessionID) -> ICEPath? {
        guard let record = sessions.record(of: session), let selected = record.selected,
            let current = record.current
        else { return nil }
        return ICEPath(pair: selected.pair, generation: current.number)
    }

    private func generation(_ number: Int, _ credentials: ICECredentials) -> Generation<Key>? {
        let ufrag = LocalUfrag(credentials)
        guard ufrags[ufrag] == nil else { return nil }
        return Generation(number: number, ufrag: ufrag, key: Key(password: Array(credentials.password.utf8)))
    }

    /// Notes that another agent of the port answered a check from this pair. Datagrams from the pair are its own until it
    /// has answered none for the time of consent. Returns false, and changes nothing, if a session has selected the pair, if
    /// a third agent owns it (see `ICEIgnored.addressInUse`), or if there are too many leases. The check must then remain
    /// without an answer.
    public mutating func lease(_ pair: AddressPair, to other: Int, now: MonotonicTime) -> Bool {
        if let tenant = owners.tenant(of: pair, within: Self.leaseHold, now: now), tenant != other {
            return refuseLease()
        }
        let owner: ICESessionID? = if case .session(let owner) = owners[pair] { owner } else { nil }
        if let owner, sessions[owner.index].selected?.pair == pair { return refuseLease() }
        guard owners.lease(pair, to: other, now: now) else { return refuseLease() }
        if let owner { sessions[owner.index].pairs.removeAll { $0.pair == pair } }
        return true
    }

    private mutating func refuseLease() -> Bool {
        ignored[ICEIgnored.addressInUse.rawValue] += 1
        return false
    }

    // MARK: Time

    /// When to call `nextExpired`. `.never` without a selected pair.
    ///
    /// A check can only move it to later, or from `.never`. A timer set to an earlier value is harmless.
    public var nextTimeout: MonotonicTime {
        sessions.nextToExpire.map { $0.checkedAt + consent } ?? .never
    }

    /// Returns a session whose selected pair expired, nil if there is none. To be called until it returns nil.
    ///
    /// The session may no longer send, and its addresses are forgotten. It remains, so that the peer can nominate a pair
    /// again.
    public mutating func nextExpired(now: MonotonicTime) -> ICESessionID? {
        guard nextTimeout <= now else { return nil }
        let index = sessions.first
        dropPairs(of: index)
        return sessions.id(at: index)
    }

    /// Forgets the addresses of a session.
    private mutating func dropPairs(of index: Int) {
        for checked in sessions[index].pairs { owners.remove(checked.pair) }
        sessions[index].pairs.removeAll()
        sessions[index].selected = nil
        sessions.leaveOrder(index)
    }

    // MARK: Receiving

    /// Handles one datagram.
    ///
    /// - Parameters:
    ///   - datagram: The bytes, over TCP without the frame of RFC 4571.
    ///   - remote: Where it came from.
    ///   - local: Where it arrived.
    ///   - answer: Receives the response to a `.check`. Otherwise unchanged.
    public mutating func receive(
        _ datagram: Span<UInt8>, from remote: TransportAddress, to local: TransportAddress, now: MonotonicTime,
        answer: inout PacketBuffer
    ) -> ICEReceived {
        let pair = AddressPair(remote: remote, local: local)
        // RFC 7983, section 7.
        switch datagram.isEmpty ? .max : datagram[0] {
        case 0...3: return receiveSTUN(datagram, on: pair, now: now, &answer)
        case 20...63, 128...191:
            switch owners[pair] {
            case .session(let session): return .media(session)
            case .agent(let lease) where now - lease.renewedAt < consent: return .elsewhere(lease.place)
            case .agent, nil: return ignore(.unknownAddress)
            }
        default: return ignore(.unknownProtocol)
        }
    }

    private mutating func ignore(_ reason: ICEIgnored) -> ICEReceived {
        ignored[reason.rawValue] += 1
        return .ignored(reason)
    }

    private mutating func receiveSTUN(
        _ datagram: Span<UInt8>, on pair: AddressPair, now: MonotonicTime, _ answer: inout PacketBuffer
    ) -> ICEReceived {
        guard datagram.count <= PacketBuffer.capacity, let message = STUNMessage(parsing: datagram) else {
            return ignore(.malformed)
        }
        guard message.kind == .request, message.method == STUNMessage.binding else { return ignore(.notCheck) }
        guard let username = message.username, let ufrag = LocalUfrag(of: username, in: datagram) else {
            return ignore(.unknownUfrag)
        }
        guard let index = ufrags[ufrag] else {
            let other = ICECredentials.place(in: datagram[username.lowerBound])
            guard let other, other != place, other < agents else { return ignore(.unknownUfrag) }
            return .elsewhere(other)
        }
        guard message.hasFingerprint(in: datagram) else { return ignore(.badFingerprint) }
        let isRestart = sessions[index].next?.ufrag == ufrag
        guard let generation = isRestart ? sessions[index].next : sessions[index].current,
            message.isSigned(with: generation.key, in: datagram)
        else { return ignore(.unauthenticated) }
        guard
            generation.remoteUfrag.isEmpty
                || datagram.extracting(ufrag.rest(of: username)).equals(generation.remoteUfrag.span)
        else { return ignore(.unknownPeer) }

        let response: STUNResponse
        var isSelected = false
        if let error = Self.error(of: message) {
            response = .error(error)
        } else {
            guard admit(pair, to: index, now: now) else { return ignore(.addressInUse) }
            isSelected = follow(message, on: pair, of: index, isRestart: isRestart, now: now)
            response = .success(pair.remote)
        }
        response.write(to: message, in: datagram, signedWith: generation.key, into: &answer)
        return .check(sessions.id(at: index), selected: isSelected)
    }

    /// The reason to refuse an authenticated check.
    private static func error(of check: STUNMessage) -> STUNErrorCode? {
        if check.unknownAttributes > 0 { return .unknownAttribute }
        switch check.role {
        // The end that is lite is controlled (RFC 8445, section 6.1.1) and cannot become controlling.
        case .controlled: return .roleConflict
        case .controlling: return check.nominates && check.priority == nil ? .badRequest : nil
        case nil: return check.nominates ? .badRequest : nil
        }
    }

    /// Notes an authenticated check from a pair. Returns false if it is the selected pair of another session: who knows the
    /// credentials of one session must not take another one's media by a forged address.
    private mutating func admit(_ pair: AddressPair, to index: Int, now: MonotonicTime) -> Bool {
        guard owners.tenant(of: pair, within: Self.leaseHold, now: now) == nil else { return false }
        if case .session(let session) = owners[pair] {
            let owner = session.index
            if owner == index {
                if let place = sessions[index].pairs.firstIndex(where: { $0.pair == pair }) {
                    sessions[index].pairs[place].at = now
                }
                return true
            }
            guard sessions[owner].selected?.pair != pair else { return false }
            sessions[owner].pairs.removeAll { $0.pair == pair }
        }
        if sessions[index].pairs.count >= Self.pairLimit, let oldest = sessions[index].oldest {
            owners.remove(sessions[index].pairs.remove(at: oldest).pair)
        }
        sessions[index].pairs.append(.init(pair: pair, at: now))
        owners.set(sessions.id(at: index), for: pair)
        return true
    }

    /// Follows the nomination of a check, and renews the consent for the selected pair. Returns true if another pair was
    /// selected.
    private mutating func follow(
        _ check: STUNMessage, on pair: AddressPair, of index: Int, isRestart: Bool, now: MonotonicTime
    ) -> Bool {
        if !check.nominates {
            if isRestart {
                sessions[index].next?.choosesPairs = true
            } else {
                sessions[index].current?.choosesPairs = true
            }
        }
        let previous = sessions[index].selected
        let priority = check.priority ?? 0
        if check.nominates, isRestart || accepts(priority, instead: previous, of: index, on: pair, now: now) {
            if isRestart { completeRestart(of: index) }
            sessions[index].selected = SelectedPair(pair: pair, priority: priority, checkedAt: now)
        }
        guard sessions[index].selected?.pair == pair else { return false }
        sessions[index].selected?.checkedAt = now
        sessions.moveToEnd(index)
        return previous?.pair != pair
    }

    /// Whether a nomination replaces the selected pair. See the type's description.
    private mutating func accepts(
        _ priority: UInt32, instead selected: SelectedPair?, of index: Int, on pair: AddressPair, now: MonotonicTime
    ) -> Bool {
        guard let selected, selected.pair != pair else { return true }
        return sessions[index].current?.choosesPairs == true || priority >= selected.priority
            || now - selected.checkedAt >= Self.nominationHold
    }

    /// The peer nominated a pair with the credentials of a restart, which ends the previous ones.
    private mutating func completeRestart(of index: Int) {
        if let ended = sessions[index].current { ufrags[ended.ufrag] = nil }
        sessions[index].current = sessions[index].next
        sessions[index].next = nil
    }
}

extension Span where Element == UInt8 {
    func equals(_ other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }
}
