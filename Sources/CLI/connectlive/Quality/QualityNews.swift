internal import MediaGraph
internal import RoomClient

/// The lines about the quality of the outgoing video: one whenever its size or rate changes, with those before.
struct QualityNews {
    /// For a processor that is too slow.
    static let advice =
        "reduce --size, --fps or --layers, or pass --codec h264 if 'connectlive doctor' shows a hardware encoder"
    /// Layers may come one after the other at the start. Those that are off after so many looks are news.
    private static let begun = 20
    /// How often a network that carries too little has to be seen, and the first looks say nothing about it.
    private static let (patience, unsettled) = (3, 6)
    /// The share of the wished rate below which frames are visibly coarser.
    private static let coarse = 0.7

    private var told: VideoQuality?
    private var looks = 0
    private var hasTold = false
    /// Whether a line has told that the network carries less than the video could use.
    private var isTight = false
    /// How many looks in a row show otherwise.
    private var tightLooks = 0
    /// Whether video that is not encoded here was too much for the network.
    private var isCrowded = false

    /// The line for the present quality, if there is news. Called about twice a second.
    ///
    /// - Parameter wish: the bits per second that the encoder would send without a limit. Nil if that is unknown
    mutating func line(_ quality: VideoQuality?, wish: Double? = nil) -> String? {
        guard let quality else { return nil }
        looks += 1
        defer { told = quality }
        guard let told else { return nil }
        let isNew = !quality.looks(like: told)
        let isOffFromStart =
            looks == Self.begun && !hasTold && quality.limitation != .none && quality.layers.contains { !$0.isActive }
        // Layers that begin one after the other are no news.
        let isBeginning = looks < Self.begun && !hasTold && quality.limitation == .none
        guard isNew && !isBeginning || isOffFromStart else { return bitsLine(quality, wish) }
        (hasTold, isTight, tightLooks) = (true, quality.limitation != .none, 0)
        let needsAdvice = quality.limitation == .processor && !quality.isBetter(than: told)
        return (isNew ? quality.change(from: told) : "\(quality)") + (needsAdvice ? "; \(Self.advice)" : "")
    }

    /// The line for a video of the same size and rate whose frames get coarser, or fine again: bits are the first to fall.
    private mutating func bitsLine(_ quality: VideoQuality, _ wish: Double?) -> String? {
        let carried = quality.limitedBitsPerSecond.map(Double.init)
        let isNarrow = carried.flatMap { carried in wish.map { carried < $0 * Self.coarse } } ?? false
        let isNews = isTight ? quality.limitation == .none : isNarrow && quality.limitation != .none
        tightLooks = isNews && looks > Self.unsettled ? tightLooks + 1 : 0
        guard tightLooks >= Self.patience else { return nil }
        isTight.toggle()
        (hasTold, tightLooks) = (true, 0)
        return isTight ? "\(quality), with fewer bits" : "\(quality)"
    }

    /// The line for video that its source encodes, if there is news.
    mutating func line(passing video: RoomStatistics.Published, _ carriedBitsPerSecond: Double?) -> String? {
        guard (video.limitation != .none) != isCrowded else { return nil }
        isCrowded.toggle()
        guard isCrowded else { return "the \(video.codec) of the source passes whole again" }
        let rate = carriedBitsPerSecond.map { "\(Int(($0 / 1000).rounded())) kbit/s" } ?? "too little"
        let network = video.limitation == .subscribers ? "the networks of all subscribers carry" : "the network carries"
        return "\(network) \(rate): frames of the source's \(video.codec) are left out; "
            + "--codec vp8 or --layers 3 encodes it with fewer bits"
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
    private var spoken = AudioNews()
    /// The last one that is over.
    private var outage: RoomStatistics.Outage?
    private var viewed = ViewNews()
    /// The wanted number of sizes, until it is compared with that of the video.
    private var layers: Int?

    /// - Parameter layers: the sizes in which the video should be sent
    init(
        outgoing: (@Sendable () async -> RoomStatistics)? = nil, layers: Int? = nil,
        incoming: (@Sendable () async -> RoomStatistics)? = nil
    ) {
        (self.outgoing, self.layers, self.incoming) = (outgoing, layers, incoming)
    }

    /// Prints what has changed. Called twice a second.
    func tell() async {
        if let outgoing { for line in outgoingLines(await outgoing()) { QualityNews.tell(line) } }
        if let incoming { for line in viewed.lines(await incoming()) { QualityNews.tell(line) } }
    }

    func outgoingLines(_ statistics: RoomStatistics) -> [String] {
        let isInterrupted = statistics.lostSeconds != nil || statistics.interruptedSeconds != nil
        if isInterrupted || statistics.outages.last != outage {
            outage = statistics.outages.last
            spoken.wasInterrupted()
        }
        // During an outage, the quality is that of the time before.
        guard !isInterrupted else { return [] }
        var lines: [String?] = []
        if let audio = statistics.published.first(where: { !$0.isVideo }) {
            lines.append(spoken.line(audio, statistics.sendingBitsPerSecond))
        }
        if let video = statistics.published.first(where: \.isVideo) { lines += videoLines(video, statistics) }
        return lines.compactMap(\.self)
    }

    private func videoLines(_ video: RoomStatistics.Published, _ statistics: RoomStatistics) -> [String?] {
        var lines: [String?] = []
        if let wanted = layers, video.width > 0 {
            layers = nil
            lines.append(Self.fewerLayers(video, wanted: wanted))
        }
        lines.append(published.line(StatusLine.quality(statistics), wish: video.wishedBitsPerSecond))
        if !video.isEncoded, video.layers.isEmpty {
            lines.append(published.line(passing: video, StatusLine.carried(of: video, statistics)))
        }
        return lines
    }

    /// One line if a video is too small for the wanted sizes.
    private static func fewerLayers(_ video: RoomStatistics.Published, wanted: Int) -> String? {
        let count = max(1, video.layers.count)
        guard count < wanted else { return nil }
        let most = VideoLayer.most(forWidth: video.width, height: video.height)
        let sizes = count == 1 ? "one size" : "\(count) sizes"
        guard most < wanted else { return "The room takes the video in \(sizes) alone, not in \(wanted)." }
        return "The video is \(video.width)x\(video.height), too small for \(wanted) sizes, so it is sent in \(sizes). "
            + "Two sizes need 480x270, and three need 960x540."
    }
}

extension VideoQuality {
    /// Whether a viewer sees the same size at the same rate.
    fileprivate func looks(like other: VideoQuality) -> Bool {
        (width, height, layers) == (other.width, other.height, other.layers)
            && abs((framesPerSecond ?? 0) - (other.framesPerSecond ?? 0)) < Self.sameRate
    }
}
