internal import MediaGraph
internal import RoomClient

/// The lines that `view` prints when a watched video gets worse or better, and why.
struct ViewNews {
    private struct Picture: Equatable {
        var (width, height) = (0, 0)
        var limitation: RoomStatistics.Received.Limitation?

        /// The rates of the link alone are no news.
        func looks(like other: Picture) -> Bool {
            (width, height) == (other.width, other.height) && limitation?.kind == other.limitation?.kind
        }
    }

    private struct Watched {
        var told: Picture
        /// The largest size that it has had.
        var best: (width: Int, height: Int)
        /// Not told yet: the size and its cause arrive one after the other.
        var next: (picture: Picture, polls: Int)?
        /// Those that had arrived at the last look.
        var frames = 0
        /// The share of lost packets in the last line, and the looks since then.
        var toldLoss = 0.0
        var looks = 0
        /// How many looks in a row contradict the figures of the last line.
        var wrongLooks = 0

        mutating func tell(_ picture: Picture, loss: Double) {
            (next, told, toldLoss, looks, wrongLooks) = (nil, picture, loss, 0, 0)
        }

        /// Whether the figures of the last line have been wrong for long enough. Called at each look.
        mutating func isCorrection(_ picture: Picture, loss: Double) -> Bool {
            wrongLooks = isWrong(now: picture, loss: loss) ? wrongLooks + 1 : 0
            return wrongLooks >= ViewNews.certainty && looks >= ViewNews.correction
        }

        /// Whether the rate of the link is no longer half or twice that of the last line, or its losses are over.
        private func isWrong(now picture: Picture, loss: Double) -> Bool {
            guard case .link(let last)? = told.limitation?.cause, case .link(let present)? = picture.limitation?.cause
            else { return false }
            if toldLoss >= VideoQuality.leastLoss, loss < VideoQuality.leastLoss / 2 { return true }
            guard let rate = ViewNews.believable(present) else { return false }
            guard let before = ViewNews.believable(last) else { return true }
            return rate >= 2 * before || before >= 2 * rate
        }
    }

    /// How often a change has to be seen before it is told.
    private static let patience = 3
    /// How many looks after a line another one may correct its figures, and how many of them in a row have to contradict it.
    private static let (correction, certainty) = (20, 10)
    /// An estimate below this many bits per second has not settled.
    private static let leastRate = 10_000
    private var watched: [Int: Watched] = [:]

    /// The lines for the present statistics. Called about twice a second.
    mutating func lines(_ statistics: RoomStatistics) -> [String] {
        let videos = statistics.received.filter { $0.isVideo && !$0.hasEnded }
        watched = watched.filter { entry in videos.contains { $0.streamId == entry.key } }
        return videos.compactMap { line(about: $0) }
    }

    private mutating func line(about video: RoomStatistics.Received) -> String? {
        var picture = Picture(width: video.width, height: video.height, limitation: video.limitation)
        // The server tells a second later that the publisher is back.
        if case .publisher = picture.limitation?.cause, picture.limitation?.lacksFrames == true,
            let before = watched[video.streamId]?.frames, video.framesReceived > before
        {
            picture.limitation = nil
        }
        guard picture.width > 0 || picture.limitation?.lacksFrames == true else { return nil }
        guard var entry = watched[video.streamId] else {
            // The first size is told by the status line. A cause is news at once.
            let told = Picture(width: video.width, height: video.height)
            watched[video.streamId] = Watched(
                told: told, best: (video.width, video.height), frames: video.framesReceived)
            return picture.limitation == nil ? nil : line(about: video)
        }
        (entry.frames, entry.looks) = (video.framesReceived, entry.looks + 1)
        defer { watched[video.streamId] = entry }
        if picture.width * picture.height > entry.best.width * entry.best.height {
            entry.best = (picture.width, picture.height)
        }
        guard !picture.looks(like: entry.told) else {
            entry.next = nil
            guard entry.isCorrection(picture, loss: video.recentLoss) else { return nil }
            return tell(picture, of: video, &entry)
        }
        guard let next = entry.next, next.picture.looks(like: picture) else {
            entry.next = (picture, 1)
            return nil
        }
        entry.next = (picture, next.polls + 1)
        guard next.polls + 1 >= Self.patience else { return nil }
        return tell(picture, of: video, &entry)
    }

    private func tell(_ picture: Picture, of video: RoomStatistics.Received, _ entry: inout Watched) -> String {
        let hadNoFrames = entry.told.limitation?.lacksFrames == true
        entry.tell(picture, loss: video.recentLoss)
        return "Video \(video.streamId) of \(video.participantId): "
            + Self.words(picture, best: entry.best, loss: video.recentLoss, hadNoFrames)
    }

    /// - Parameter loss: of the own link
    private static func words(
        _ picture: Picture, best: (width: Int, height: Int), loss: Double, _ hadNoFrames: Bool
    ) -> String {
        let size = "\(picture.width)x\(picture.height)"
        let full = (picture.limitation?.fullWidth ?? 0, picture.limitation?.fullHeight ?? 0)
        let most = full.0 * full.1 > best.width * best.height ? full : best
        let isLess = picture.width * picture.height < most.0 * most.1
        let sizes = isLess ? "\(size) instead of \(most.0)x\(most.1)" : size
        // A server of an earlier version tells no cause.
        guard let limitation = picture.limitation else {
            guard !isLess else { return "now \(sizes)" }
            return hadNoFrames ? "frames arrive again: \(size)" : "full quality: \(size)"
        }
        let cause = Self.cause(limitation, loss: loss)
        guard !limitation.lacksFrames else {
            if case .link = limitation.cause { return "\(cause): frames are missing" }
            return cause
        }
        // Without layers, the size may have been lower from the start.
        return "\(cause): \(sizes)" + (isLess ? "" : ", with fewer bits")
    }

    /// Losses are the reason for which a link carries little.
    private static func cause(_ limitation: RoomStatistics.Received.Limitation, loss: Double) -> String {
        guard case .link(let rate) = limitation.cause else { return "\(limitation)" }
        let carries = believable(rate).map { "carries \(($0 + 500) / 1000) kbit/s" }
        guard loss >= VideoQuality.leastLoss else { return "your link \(carries ?? "carries too little")" }
        let share = Int((100 * loss).rounded())
        return "your link loses \(share) % of packets" + (carries.map { " and \($0)" } ?? "")
    }

    /// Nil for a rate that says nothing.
    private static func believable(_ rate: Int?) -> Int? { rate.flatMap { $0 >= leastRate ? $0 : nil } }
}

extension RoomStatistics.Received.Limitation {
    /// The cause without its rate.
    fileprivate var kind: Self {
        var kind = Self(cause: cause, lacksFrames: lacksFrames)
        if case .link = cause { kind.cause = .link(bitsPerSecond: nil) }
        return kind
    }
}
