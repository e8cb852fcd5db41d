package enum StreamMedia: String, Codable, Sendable, Hashable { case audio, video }

/// A published stream, as announced to all participants.
package struct StreamInfo: Codable, Sendable, Equatable {
    /// Unique in the server's lifetime.
    package var id: Int
    package var media: StreamMedia
    /// `VP8`, `VP9`, `H264` or `opus`.
    package var codec: String
    package var attributes: StreamAttributes
    /// How many layers it has, of simulcast or spatial ones. 1 without.
    package var layers: Int
    /// Whether its layers come in the same packets (SVC). For the server alone.
    package var isScalable = false
    /// Whether its packets tell how loud they are. For the server alone.
    package var hasLevels = false
    package var state: StreamState
    /// Why its publisher sends it worse than it could. For the server alone.
    package var reduction: StreamQuality.Reason?

    package init(
        id: Int, media: StreamMedia, codec: String, attributes: StreamAttributes, layers: Int = 1,
        state: StreamState = .live
    ) {
        self.layers = layers
        self.id = id
        self.media = media
        self.codec = codec
        self.attributes = attributes
        self.state = state
    }

    package init(
        id: Int, media: StreamMedia, codec: String, extraValue: String, layers: Int = 1, state: StreamState = .live
    ) {
        self.init(
            id: id, media: media, codec: codec, attributes: StreamAttributes(extraValue: extraValue), layers: layers,
            state: state)
    }

    /// The state and all attributes.
    package var properties: StreamChange { StreamChange(attributes, state: state) }

    package mutating func apply(_ change: StreamChange) {
        state = change.state ?? state
        attributes.apply(change)
    }

    private enum CodingKeys: String, CodingKey { case id, media, codec, extraValue, layers }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        id = try fields.decode(Int.self, forKey: .id)
        media = try fields.decode(StreamMedia.self, forKey: .media)
        codec = try fields.decode(String.self, forKey: .codec)
        attributes = try StreamAttributes(from: decoder)
        attributes.extraValue = try fields.decode(String.self, forKey: .extraValue)
        layers = try fields.decodeIfPresent(Int.self, forKey: .layers) ?? 1
        state = try StreamState(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(id, forKey: .id)
        try fields.encode(media, forKey: .media)
        try fields.encode(codec, forKey: .codec)
        try attributes.encode(to: encoder)
        // Earlier versions require it.
        try fields.encode(attributes.extraValue, forKey: .extraValue)
        if layers != 1 { try fields.encode(layers, forKey: .layers) }
        try state.encode(to: encoder)
    }
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
    /// Whether the subscriber wants no frames for now. It keeps its receiver.
    package var isPaused: Bool

    package init(
        profile: Profile? = nil, width: Int? = nil, height: Int? = nil, priority: Double? = nil, isPaused: Bool = false
    ) {
        self.isPaused = isPaused
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
    private enum CodingKeys: String, CodingKey { case profile, width, height, priority, paused }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        profile = try fields.decodeIfPresent(String.self, forKey: .profile).flatMap(Profile.init)
        width = try fields.decodeIfPresent(Int.self, forKey: .width)
        height = try fields.decodeIfPresent(Int.self, forKey: .height)
        priority = try fields.decodeIfPresent(Double.self, forKey: .priority)
        isPaused = try fields.decodeIfPresent(Bool.self, forKey: .paused) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encodeIfPresent(profile, forKey: .profile)
        try fields.encodeIfPresent(width, forKey: .width)
        try fields.encodeIfPresent(height, forKey: .height)
        try fields.encodeIfPresent(priority, forKey: .priority)
        if isPaused { try fields.encode(true, forKey: .paused) }
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
