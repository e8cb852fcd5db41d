/// The signalling messages of client and server, specified in docs/signalling.md.
package enum Signalling {
    /// The protocol versions of this build. A connection uses the newest that both ends have.
    package static let versions = [1]
    /// Path of the WebSocket.
    package static let webSocketPath = "/v1/room"
    package static let signInPath = "/v1/sign-in"
    package static let signOutPath = "/v1/sign-out"
    package static let pageTokenPath = "/v1/page-token"
    package static let statisticsPath = "/v1/statistics"
    package static let roomsPath = "/v1/rooms"
    /// Responds with 200 while the server runs, for monitors and proxies.
    package static let healthPath = "/v1/health"
    /// Longest accepted message in bytes. An offer of 24 receivers has about 30 KiB.
    package static let maximumMessageLength = 256 * 1024
}

package enum SessionDirection: String, Codable, Sendable, Hashable { case up, down }

package struct ParticipantInfo: Codable, Sendable, Equatable {
    package var id: String
    package var streams: [StreamInfo]

    package init(id: String, streams: [StreamInfo]) {
        self.id = id
        self.streams = streams
    }
}

/// The receivers that a client requests for its down session.
package struct ReceiverPool: Codable, Sendable, Equatable {
    package var initial: Int
    package var maximum: Int
    package var growth: Int

    package init(initial: Int = 9, maximum: Int = 20, growth: Int = 1) {
        self.initial = initial
        self.maximum = maximum
        self.growth = growth
    }
}

// MARK: - From the client

package struct Join: Codable, Sendable, Equatable {
    /// The client's version for servers that do not read `versions`.
    package var version: Int
    /// The versions that the client has. Nil means `version` alone.
    package var versions: [Int]?
    package var token: String
    package var room: String
    package var receivers: ReceiverPool?
    /// Whether the client acknowledges messages, so that it can resume over another connection. Nil means no.
    package var resume: Bool?

    package init(
        version: Int = 1, versions: [Int]? = nil, token: String, room: String, receivers: ReceiverPool? = nil,
        resume: Bool? = nil
    ) {
        self.version = version
        self.versions = versions
        self.token = token
        self.room = room
        self.receivers = receivers
        self.resume = resume
    }

    /// The newest version that both ends have. Throws if they have none in common.
    package func negotiatedVersion(with own: [Int] = Signalling.versions) throws(RoomError) -> Int {
        let theirs = versions ?? [version]
        guard !theirs.isEmpty else {
            throw RoomError(.versionUnsupported, "The list 'versions' is empty. Send \(Self.list(own)), or no list.")
        }
        guard let newest = own.filter(theirs.contains).max() else {
            throw RoomError(
                .versionUnsupported,
                "This server uses version \(Self.list(own)) of the protocol, not \(Self.list(theirs)). Use the same release "
                    + "on both ends, or send one of these in 'versions'.")
        }
        return newest
    }

    private static func list(_ versions: [Int]) -> String {
        versions.prefix(8).map(String.init).joined(separator: " or ")
    }
}

/// Continues a participation over another connection. In place of `join`.
package struct Resume: Codable, Sendable, Equatable {
    package var token: String
    package var participant: String
    /// The newest one that the client received, in `joined` or `resumed`.
    package var secret: String
    /// The number of the server's messages that the client has received.
    package var received: Int

    package init(token: String, participant: String, secret: String, received: Int) {
        self.token = token
        self.participant = participant
        self.secret = secret
        self.received = received
    }
}

/// The number of messages that this end has received since `joined`.
package struct Acknowledgement: Codable, Sendable, Equatable {
    package var received: Int

    package init(received: Int) { self.received = received }
}

package struct Publish: Codable, Sendable, Equatable {
    package struct Stream: Codable, Sendable, Equatable {
        package var mid: String
        package var attributes: StreamAttributes
        /// How many spatial layers of VP9 it may send under one SSRC. Nil means one.
        package var spatialLayers: Int?
        /// Whether the server is to record it. Nil means no.
        package var record: Bool?

        package init(
            mid: String, attributes: StreamAttributes = StreamAttributes(), spatialLayers: Int? = nil,
            record: Bool? = nil
        ) {
            self.mid = mid
            self.attributes = attributes
            self.spatialLayers = spatialLayers
            self.record = record
        }

        private enum CodingKeys: String, CodingKey { case mid, spatialLayers, record }

        package init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            mid = try fields.decode(String.self, forKey: .mid)
            spatialLayers = try fields.decodeIfPresent(Int.self, forKey: .spatialLayers)
            record = try fields.decodeIfPresent(Bool.self, forKey: .record)
            attributes = try StreamAttributes(from: decoder)
        }

        package func encode(to encoder: any Encoder) throws {
            var fields = encoder.container(keyedBy: CodingKeys.self)
            try fields.encode(mid, forKey: .mid)
            try fields.encodeIfPresent(spatialLayers, forKey: .spatialLayers)
            try fields.encodeIfPresent(record, forKey: .record)
            try attributes.encode(to: encoder)
        }
    }
    package var sdp: String
    package var streams: [Stream]

    package init(sdp: String, streams: [Stream]) {
        self.sdp = sdp
        self.streams = streams
    }
}

package struct Description: Codable, Sendable, Equatable {
    package var session: SessionDirection
    package var sdp: String
    /// The number of the down session's offer. An answer repeats it.
    package var revision: Int

    package init(session: SessionDirection, sdp: String, revision: Int) {
        self.session = session
        self.sdp = sdp
        self.revision = revision
    }
}

package struct Candidate: Codable, Sendable, Equatable {
    package var session: SessionDirection
    /// `candidate:...` as in RFC 8839. Empty means that no more follow.
    package var candidate: String

    package init(session: SessionDirection, candidate: String) {
        self.session = session
        self.candidate = candidate
    }
}

package struct SessionReference: Codable, Sendable, Equatable {
    package var session: SessionDirection

    package init(session: SessionDirection) { self.session = session }
}

package enum ClientMessage: Sendable, Equatable {
    case join(Join)
    case resume(Resume)
    case ack(Acknowledgement)
    case publish(Publish)
    case unpublish(StreamReferences)
    case setStream(SetStream)
    /// Of clients of earlier versions.
    case setStreamState(SetStreamState)
    case streamReduced(StreamReduced)
    case answer(Description)
    case candidate(Candidate)
    /// Requests an offer of the down session with other ICE credentials.
    case restartICE(SessionReference)
    case subscribe(ViewOfStream)
    case setView(ViewOfStream)
    case unsubscribe(StreamReference)
    case message(SendMessage)
    case ping
    case leave
}

// MARK: - From the server

package struct Joined: Codable, Sendable, Equatable {
    package var version: Int
    package var participant: String
    package var participants: [ParticipantInfo]
    /// Nil without any.
    package var iceServers: [ICEServerInfo]?
    /// Nil if the participant leaves as soon as the connection ends.
    package var resume: ResumeTerms?
    /// The video receivers that the participant gets. Older servers do not tell it.
    package var receivers: ReceiverPool?

    package init(
        version: Int, participant: String, participants: [ParticipantInfo], iceServers: [ICEServerInfo] = [],
        resume: ResumeTerms? = nil, receivers: ReceiverPool? = nil
    ) {
        self.receivers = receivers
        self.version = version
        self.participant = participant
        self.participants = participants
        self.iceServers = iceServers.isEmpty ? nil : iceServers
        self.resume = resume
    }

    private enum CodingKeys: String, CodingKey {
        case version, participant, participants, iceServers, resume, receivers
    }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        version = try fields.decode(Int.self, forKey: .version)
        participant = try fields.decode(String.self, forKey: .participant)
        participants = try fields.decode([ParticipantInfo].self, forKey: .participants)
        iceServers = try fields.usableServers(forKey: .iceServers)
        resume = try fields.decodeIfPresent(ResumeTerms.self, forKey: .resume)
        receivers = try fields.decodeIfPresent(ReceiverPool.self, forKey: .receivers)
    }
}

/// How a client that loses its connection continues.
package struct ResumeTerms: Codable, Sendable, Equatable {
    /// 128 random bits in base64url.
    package var secret: String
    /// For how long the server keeps the participant without a connection.
    package var seconds: Int

    package init(secret: String, seconds: Int) {
        self.secret = secret
        self.seconds = seconds
    }
}

/// The participation continues. The messages that the other end has not received follow.
package struct Resumed: Codable, Sendable, Equatable {
    /// The number of the client's messages that the server has received.
    package var received: Int
    /// Replaces the one before.
    package var secret: String

    package init(received: Int, secret: String) {
        self.received = received
        self.secret = secret
    }
}

package struct Published: Codable, Sendable, Equatable {
    package struct Stream: Codable, Sendable, Equatable {
        package var mid: String
        package var stream: Int
        /// Whether the server records it, if it was asked to. Nil otherwise, and from a server that never records.
        package var recording: Bool?

        package init(mid: String, stream: Int, recording: Bool? = nil) {
            self.mid = mid
            self.stream = stream
            self.recording = recording
        }
    }
    package var sdp: String
    package var streams: [Stream]

    package init(sdp: String, streams: [Stream]) {
        self.sdp = sdp
        self.streams = streams
    }
}

package struct ParticipantEntered: Codable, Sendable, Equatable {
    package var participant: ParticipantInfo

    package init(participant: ParticipantInfo) { self.participant = participant }
}

package struct ParticipantReference: Codable, Sendable, Equatable {
    package var participant: String

    package init(participant: String) { self.participant = participant }
}

package struct Problem: Codable, Sendable, Equatable {
    package var code: String
    package var message: String

    package init(_ error: RoomError) {
        code = error.code.name
        message = error.message
    }

    package var error: RoomError { RoomError(.init(wireName: code), message) }
}

package enum ServerMessage: Sendable, Equatable {
    case joined(Joined)
    case resumed(Resumed)
    case ack(Acknowledgement)
    case published(Published)
    case unpublished(StreamReferences)
    case streamSet(StreamReference)
    case streamStateSet(StreamReference)
    case viewSet(StreamReference)
    case subscribed(Subscribed)
    case unsubscribed(StreamReference)
    case messageSent
    case pong
    case left
    /// The response to a request. Without an id, an error about a message that was not a request.
    case error(Problem)
    case offer(Description)
    case candidate(Candidate)
    case participantEntered(ParticipantEntered)
    case participantLeft(ParticipantReference)
    case streamPublished(StreamPublished)
    case streamUnpublished(StreamUnpublished)
    case streamChanged(StreamChanged)
    case receiverAssigned(ReceiverAssigned)
    case streamLimit(StreamLimit)
    case streamQuality(StreamQuality)
    case userMessage(UserMessage)
    case iceServers(ICEServersRenewed)
    /// The server ends the connection: `destroyed`, `kicked` or `disconnected`, with the reason as an error.
    case closed(Closing)
}

package struct Closing: Codable, Sendable, Equatable {
    package enum Reason: String, Codable, Sendable {
        case disconnected, destroyed, kicked

        /// A reason of a later version becomes an error with its code and message.
        package init(from decoder: any Decoder) throws {
            self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .disconnected
        }
    }
    package var reason: Reason
    package var code: String
    package var message: String

    package init(reason: Reason, error: RoomError) {
        self.reason = reason
        code = error.code.name
        message = error.message
    }
}
