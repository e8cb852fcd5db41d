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
    /// Responds with 200 while the server runs, for monitors and proxies.
    package static let healthPath = "/v1/health"
    /// Longest accepted message in bytes. An offer of 24 receivers has about 30 KiB.
    package static let maximumMessageLength = 256 * 1024
}

package enum SessionDirection: String, Codable, Sendable, Hashable { case up, down }

package enum StreamMedia: String, Codable, Sendable, Hashable { case audio, video }

/// A published stream, as announced to all participants.
package struct StreamInfo: Codable, Sendable, Equatable {
    /// Unique in the server's lifetime.
    package var id: Int
    package var media: StreamMedia
    /// `VP8`, `VP9`, `H264` or `opus`.
    package var codec: String
    /// Free text of the publisher.
    package var extraValue: String
    /// How many layers it has, of simulcast or spatial ones. 1 without.
    package var layers: Int
    /// Whether its layers come in the same packets (SVC). For the server alone.
    package var isScalable = false
    package var state: StreamState
    /// Why its publisher sends it worse than it could. For the server alone.
    package var reduction: StreamQuality.Reason?

    package init(
        id: Int, media: StreamMedia, codec: String, extraValue: String, layers: Int = 1, state: StreamState = .live
    ) {
        self.layers = layers
        self.id = id
        self.media = media
        self.codec = codec
        self.extraValue = extraValue
        self.state = state
    }

    private enum CodingKeys: String, CodingKey { case id, media, codec, extraValue, layers }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        id = try fields.decode(Int.self, forKey: .id)
        media = try fields.decode(StreamMedia.self, forKey: .media)
        codec = try fields.decode(String.self, forKey: .codec)
        extraValue = try fields.decode(String.self, forKey: .extraValue)
        layers = try fields.decodeIfPresent(Int.self, forKey: .layers) ?? 1
        state = try StreamState(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(id, forKey: .id)
        try fields.encode(media, forKey: .media)
        try fields.encode(codec, forKey: .codec)
        try fields.encode(extraValue, forKey: .extraValue)
        if layers != 1 { try fields.encode(layers, forKey: .layers) }
        try state.encode(to: encoder)
    }
}

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
        package var extraValue: String?
        /// How many spatial layers of VP9 it may send under one SSRC. Nil means one.
        package var spatialLayers: Int?

        package init(mid: String, extraValue: String? = nil, spatialLayers: Int? = nil) {
            self.mid = mid
            self.extraValue = extraValue
            self.spatialLayers = spatialLayers
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

package struct StreamReference: Codable, Sendable, Equatable {
    package var stream: Int

    package init(stream: Int) { self.stream = stream }
}

/// A subscriber's view of a stream: it gets the smallest layer that suffices.
package struct StreamView: Sendable, Hashable {
    /// A cap by the order of the layers.
    package enum Profile: String, Codable, Sendable { case low, mid, high }

    package var profile: Profile?
    /// The size of the view in pixels. Nil for one that is not known.
    package var width: Int?
    package var height: Int?
    /// How much of the link its higher layers get, relative to other videos. Nil is 1.
    package var priority: Double?

    package init(profile: Profile? = nil, width: Int? = nil, height: Int? = nil, priority: Double? = nil) {
        self.profile = profile
        self.width = width
        self.height = height
        self.priority = priority
    }

    /// The largest size of a view, in pixels.
    package static let maximumSize = 32768
    package static let priorities = 0.01...100.0

    /// Throws if a value is out of range.
    package func validate() throws(RoomError) {
        for size in [width, height].compactMap(\.self) where !(0...Self.maximumSize).contains(size) {
            throw RoomError(
                .messageMalformed,
                "A view of \(size) pixels is out of range. Send a width and a height of 0 to \(Self.maximumSize).")
        }
        if let priority, !Self.priorities.contains(priority) {
            throw RoomError(
                .messageMalformed,
                "A view's priority is out of range. Send \(Self.priorities.lowerBound) to \(Self.priorities.upperBound)."
            )
        }
    }
}

/// The fields of a view, among those of the message that has the view. A profile of a later version counts as `high`.
extension StreamView: Codable {
    private enum CodingKeys: String, CodingKey { case profile, width, height, priority }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        profile = try fields.decodeIfPresent(String.self, forKey: .profile).flatMap(Profile.init)
        width = try fields.decodeIfPresent(Int.self, forKey: .width)
        height = try fields.decodeIfPresent(Int.self, forKey: .height)
        priority = try fields.decodeIfPresent(Double.self, forKey: .priority)
    }
}

/// `subscribe` and `setView`.
package struct ViewOfStream: Codable, Sendable, Equatable {
    package var stream: Int
    package var view: StreamView

    package init(stream: Int, view: StreamView = StreamView()) {
        self.stream = stream
        self.view = view
    }

    private enum CodingKeys: String, CodingKey { case stream }

    package init(from decoder: any Decoder) throws {
        stream = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .stream)
        view = try StreamView(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(stream, forKey: .stream)
        try view.encode(to: encoder)
    }
}

package struct StreamReferences: Codable, Sendable, Equatable {
    package var streams: [Int]

    package init(streams: [Int]) { self.streams = streams }
}

package struct SetStreamState: Codable, Sendable, Equatable {
    package var stream: Int
    package var state: StreamState

    package init(stream: Int, state: StreamState) {
        self.stream = stream
        self.state = state
    }

    private enum CodingKeys: String, CodingKey { case stream }

    package init(from decoder: any Decoder) throws {
        stream = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .stream)
        state = try StreamState(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(stream, forKey: .stream)
        try state.encode(to: encoder)
    }
}

package enum ClientMessage: Sendable, Equatable {
    case join(Join)
    case resume(Resume)
    case ack(Acknowledgement)
    case publish(Publish)
    case unpublish(StreamReferences)
    case setStreamState(SetStreamState)
    case streamReduced(StreamReduced)
    case answer(Description)
    case candidate(Candidate)
    /// Requests an offer of the down session with other ICE credentials.
    case restartICE(SessionReference)
    case subscribe(ViewOfStream)
    case setView(ViewOfStream)
    case unsubscribe(StreamReference)
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

    package init(
        version: Int, participant: String, participants: [ParticipantInfo], iceServers: [ICEServerInfo] = [],
        resume: ResumeTerms? = nil
    ) {
        self.version = version
        self.participant = participant
        self.participants = participants
        self.iceServers = iceServers.isEmpty ? nil : iceServers
        self.resume = resume
    }

    private enum CodingKeys: String, CodingKey { case version, participant, participants, iceServers, resume }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        version = try fields.decode(Int.self, forKey: .version)
        participant = try fields.decode(String.self, forKey: .participant)
        participants = try fields.decode([ParticipantInfo].self, forKey: .participants)
        iceServers = try fields.usableServers(forKey: .iceServers)
        resume = try fields.decodeIfPresent(ResumeTerms.self, forKey: .resume)
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

        package init(mid: String, stream: Int) {
            self.mid = mid
            self.stream = stream
        }
    }
    package var sdp: String
    package var streams: [Stream]

    package init(sdp: String, streams: [Stream]) {
        self.sdp = sdp
        self.streams = streams
    }
}

package struct Subscribed: Codable, Sendable, Equatable {
    package var stream: Int
    package var mid: String
    /// The RTP sequence number at which the stream begins on its receiver. Earlier packets belong to the previous
    /// stream.
    package var firstSequenceNumber: UInt16?

    package init(stream: Int, mid: String, firstSequenceNumber: UInt16? = nil) {
        self.stream = stream
        self.mid = mid
        self.firstSequenceNumber = firstSequenceNumber
    }
}

/// The stream that a receiver of the down session carries from now on.
package struct ReceiverAssigned: Codable, Sendable, Equatable {
    package var mid: String
    package var media: StreamMedia
    /// Nil when the receiver is free.
    package var stream: Int?
    package var participant: String?
    package var codec: String?
    /// As in `Subscribed`.
    package var firstSequenceNumber: UInt16?

    package init(
        mid: String, media: StreamMedia, stream: Int?, participant: String?, codec: String?,
        firstSequenceNumber: UInt16? = nil
    ) {
        self.firstSequenceNumber = firstSequenceNumber
        self.mid = mid
        self.media = media
        self.stream = stream
        self.participant = participant
        self.codec = codec
    }
}

package struct StreamPublished: Codable, Sendable, Equatable {
    package var participant: String
    package var stream: StreamInfo

    package init(participant: String, stream: StreamInfo) {
        self.participant = participant
        self.stream = stream
    }
}

package struct StreamUnpublished: Codable, Sendable, Equatable {
    package var participant: String
    package var stream: Int

    package init(participant: String, stream: Int) {
        self.participant = participant
        self.stream = stream
    }
}

package struct StreamChanged: Codable, Sendable, Equatable {
    package var participant: String
    package var stream: Int
    package var state: StreamState

    package init(participant: String, stream: Int, state: StreamState) {
        self.participant = participant
        self.stream = stream
        self.state = state
    }

    private enum CodingKeys: String, CodingKey { case participant, stream }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        participant = try fields.decode(String.self, forKey: .participant)
        stream = try fields.decode(Int.self, forKey: .stream)
        state = try StreamState(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(participant, forKey: .participant)
        try fields.encode(stream, forKey: .stream)
        try state.encode(to: encoder)
    }
}

/// How much of a published stream the links of its subscribers carry. Each gets one layer, so this is for each by itself.
package struct StreamLimit: Codable, Sendable, Equatable {
    package var stream: Int
    /// The most that any of them carries, without headers. Nil if one carries all of it.
    package var bitsPerSecond: Int?
    /// The rids of the layers that anyone may watch. Nil means all.
    package var layers: [String]?

    package init(stream: Int, bitsPerSecond: Int?, layers: [String]? = nil) {
        self.stream = stream
        self.bitsPerSecond = bitsPerSecond
        self.layers = layers
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
    case streamStateSet(StreamReference)
    case viewSet(StreamReference)
    case subscribed(Subscribed)
    case unsubscribed(StreamReference)
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
