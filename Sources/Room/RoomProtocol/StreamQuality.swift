/// Why a subscriber gets a video worse than its publisher could send it, or that it does not any longer. Each message about a
/// stream replaces the one before.
package struct StreamQuality: Codable, Sendable, Equatable {
    package enum Cause: String, Codable, Sendable {
        /// The subscriber's link carries less.
        case link
        /// The size or the profile of the subscriber's view asks for no more.
        case view
        /// The publisher sends less.
        case publisher
    }

    /// Why a publisher sends less than its source and its encoder could make.
    package enum Reason: String, Codable, Sendable {
        /// Its own link carries less.
        case network
        /// Its own link loses packets.
        case loss
        /// Its machine encodes too slowly.
        case processor
        /// Nothing of it arrives: its connection is lost. Of servers alone.
        case connection
    }

    package var stream: Int
    /// Nil if the subscriber gets all.
    package var cause: Cause?
    /// With the cause `publisher`. Nil if the publisher has not told.
    package var reason: Reason?
    /// With the cause `link`: how much the link carries of all streams, in bits per second.
    package var bitsPerSecond: Int?
    /// Whether frames are missing: the link has no room for them, or the publisher sends none.
    package var lacksFrames: Bool
    /// Of the layer that the subscriber gets, and of the largest one, in pixels. Nil if they are unknown.
    package var (width, height): (Int?, Int?)
    package var (fullWidth, fullHeight): (Int?, Int?)

    package init(
        stream: Int, cause: Cause? = nil, reason: Reason? = nil, bitsPerSecond: Int? = nil, lacksFrames: Bool = false
    ) {
        (self.stream, self.cause, self.reason) = (stream, cause, reason)
        (self.bitsPerSecond, self.lacksFrames) = (bitsPerSecond, lacksFrames)
    }

    private enum CodingKeys: String, CodingKey {
        case stream, cause, reason, bitsPerSecond, lacksFrames, width, height, fullWidth, fullHeight
    }

    /// No link carries more.
    private static let mostBitsPerSecond = 1_000_000_000_000
    private static let longestSide = 32_768

    /// A cause of a later version counts as none, and so does a reason. Impossible numbers count as unknown.
    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        stream = try fields.decode(Int.self, forKey: .stream)
        cause = try fields.decodeIfPresent(String.self, forKey: .cause).flatMap(Cause.init)
        reason = try fields.decodeIfPresent(String.self, forKey: .reason).flatMap(Reason.init)
        func number(_ key: CodingKeys, upTo most: Int) throws -> Int? {
            try fields.decodeIfPresent(Int.self, forKey: key).flatMap { (0...most).contains($0) ? $0 : nil }
        }
        bitsPerSecond = try number(.bitsPerSecond, upTo: Self.mostBitsPerSecond)
        lacksFrames = try fields.decodeIfPresent(Bool.self, forKey: .lacksFrames) ?? false
        width = try number(.width, upTo: Self.longestSide)
        height = try number(.height, upTo: Self.longestSide)
        fullWidth = try number(.fullWidth, upTo: Self.longestSide)
        fullHeight = try number(.fullHeight, upTo: Self.longestSide)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(stream, forKey: .stream)
        try fields.encodeIfPresent(cause, forKey: .cause)
        try fields.encodeIfPresent(reason, forKey: .reason)
        try fields.encodeIfPresent(bitsPerSecond, forKey: .bitsPerSecond)
        if lacksFrames { try fields.encode(true, forKey: .lacksFrames) }
        try fields.encodeIfPresent(width, forKey: .width)
        try fields.encodeIfPresent(height, forKey: .height)
        try fields.encodeIfPresent(fullWidth, forKey: .fullWidth)
        try fields.encodeIfPresent(fullHeight, forKey: .fullHeight)
    }
}

/// Why a publisher sends a stream worse than it could. A notification of the client, which earlier servers ignore.
package struct StreamReduced: Codable, Sendable, Equatable {
    package var stream: Int
    /// Nil if it does not any longer.
    package var reason: StreamQuality.Reason?

    package init(stream: Int, reason: StreamQuality.Reason?) { (self.stream, self.reason) = (stream, reason) }

    private enum CodingKeys: String, CodingKey { case stream, reason }

    /// A reason of a later version counts as none.
    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        stream = try fields.decode(Int.self, forKey: .stream)
        reason = try fields.decodeIfPresent(String.self, forKey: .reason).flatMap(StreamQuality.Reason.init)
    }
}
