internal import ClientCore
internal import RoomClient
internal import RoomProtocol

/// Why a subscribed video arrives worse than its publisher could send it, as the server says.
public struct VideoLimitation: Sendable, Hashable, CustomStringConvertible {
    /// The place where the quality is lost.
    public enum Cause: Sendable, Hashable {
        /// The link from the server to this client carries less.
        case link
        /// The profile of the video asks for no more.
        case view
        /// The publisher's own link carries less, or loses packets.
        case publisherLink
        /// The publisher's machine encodes too slowly.
        case publisherProcessor
        /// The publisher's connection to the server is lost.
        case publisherConnection
        /// The publisher sends less, for a reason that is not known.
        case publisher
    }

    /// The place where the quality is lost.
    public let cause: Cause
    /// With the cause `link`: how much it carries of all streams, in bits per second. Nil if that is unknown.
    public let carriedBitsPerSecond: Int?
    /// Whether frames are missing: the link has no room for them, or the publisher sends none.
    public let lacksFrames: Bool
    /// One sentence without a full stop, such as `your link carries 640 kbit/s`.
    public let description: String

    init(_ limitation: RoomStatistics.Received.Limitation) {
        var carried: Int?
        switch limitation.cause {
        case .link(let rate): (cause, carried) = (.link, rate)
        case .view: cause = .view
        case .publisher(.network?), .publisher(.loss?): cause = .publisherLink
        case .publisher(.connection?): cause = .publisherConnection
        case .publisher(.processor?): cause = .publisherProcessor
        case .publisher(nil): cause = .publisher
        }
        carriedBitsPerSecond = carried
        lacksFrames = limitation.lacksFrames
        description = "\(limitation)"
    }
}
