package import RoomProtocol

extension RoomStatistics.Received {
    /// Why a subscribed video arrives worse than its publisher could send it.
    public struct Limitation: Sendable, Hashable {
        package enum Cause: Sendable, Hashable {
            /// The link from the server to this client carries so many bits per second of all streams. Nil if the server did not
            /// say how many.
            case link(bitsPerSecond: Int?)
            /// The size or the profile of the view asks for no more.
            case view
            /// The publisher sends less.
            case publisher(StreamQuality.Reason?)
        }

        package var cause: Cause
        /// Whether frames are missing: the link has no room for them, or the publisher sends none.
        public var lacksFrames: Bool
        /// Of the publisher's largest layer, in pixels. Nil for a video in one size, and if it is unknown.
        public var fullWidth: Int?
        /// Likewise.
        public var fullHeight: Int?

        package init(cause: Cause, lacksFrames: Bool = false) { (self.cause, self.lacksFrames) = (cause, lacksFrames) }

        /// Nil without a cause.
        init?(_ quality: StreamQuality) {
            switch quality.cause {
            case .link?: cause = .link(bitsPerSecond: quality.bitsPerSecond)
            case .view?: cause = .view
            case .publisher?: cause = .publisher(quality.reason)
            case nil: return nil
            }
            lacksFrames = quality.lacksFrames
            (fullWidth, fullHeight) = (quality.fullWidth, quality.fullHeight)
        }
    }
}

extension RoomStatistics.Received.Limitation: CustomStringConvertible {
    /// Such as `your link carries 640 kbit/s`.
    public var description: String {
        switch cause {
        case .link(let rate?) where rate > 0: "your link carries \((rate + 500) / 1000) kbit/s"
        case .link(_?): "your link carries nothing"
        case .link(nil): "your link carries less"
        case .view: "your view asks for no more"
        case .publisher(.connection?): "its publisher's connection is lost"
        case .publisher(.network?) where lacksFrames: "its publisher's link carries nothing of it"
        case .publisher where lacksFrames: "its publisher sends nothing"
        case .publisher(.network?): "its publisher's link carries no more"
        case .publisher(.loss?): "its publisher's link loses packets"
        case .publisher(.processor?): "its publisher's processor is too slow for more"
        case .publisher(nil): "its publisher sends no more"
        }
    }
}
