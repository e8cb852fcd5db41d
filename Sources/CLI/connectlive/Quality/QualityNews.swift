internal import MediaGraph
internal import RoomClient

/// Prints the quality of the outgoing video whenever its size or rate changes, and keeps it for `connectlive why`.
struct QualityNews {
    private var told: VideoQuality?

    mutating func tell(_ quality: VideoQuality?) {
        guard let quality else { return }
        if let told, !quality.looks(like: told) { Self.tell("\(quality)") }
        told = quality
    }

    /// Prints a line, and keeps it for `connectlive why`.
    static func tell(_ line: String) {
        Console.line(line)
        QualityChanges.shared.note(line)
    }
}

/// News about the media of a room, each a line of its own.
actor RoomNews {
    private let outgoing: (@Sendable () async -> RoomStatistics)?
    private let incoming: (@Sendable () async -> RoomStatistics)?
    private var published = QualityNews()
    private var viewed = ViewNews()

    init(
        outgoing: (@Sendable () async -> RoomStatistics)? = nil, incoming: (@Sendable () async -> RoomStatistics)? = nil
    ) {
        (self.outgoing, self.incoming) = (outgoing, incoming)
    }

    /// Prints what has changed. Called twice a second.
    func tell() async {
        if let outgoing { published.tell(StatusLine.quality(await outgoing())) }
        if let incoming { for line in viewed.lines(await incoming()) { QualityNews.tell(line) } }
    }
}

extension VideoQuality {
    /// Whether a viewer sees the same size at the same rate.
    fileprivate func looks(like other: VideoQuality) -> Bool {
        (width, height, layers) == (other.width, other.height, other.layers)
            && abs((framesPerSecond ?? 0) - (other.framesPerSecond ?? 0)) < 0.05
    }
}
