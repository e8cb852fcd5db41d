/// Splits the rate that one subscriber's link carries among the streams that it receives: audio first, and then an equal share for
/// the lowest layer of each video. The rate that a video does not need goes to the others (max-min fairness). The rest
/// pays for higher layers, those of videos with a high priority first.
///
/// Rates are bits per second of the path.
struct LinkShares {
    /// A video may become larger with the scene.
    static let headroom = 1.25
    /// The part of its rate that a layer needs to go on, so that it does not change with each estimate.
    static let persistence = 0.95
    /// The parts of its rate with which an elastic layer begins, and goes on. It still shows more than the one below.
    static let elastic = 0.6
    static let leastElastic = 0.5
    /// The least part of the link that the videos get, however much audio there is.
    private static let leastPart = 0.2

    /// A video without simulcast has one layer.
    struct Video: Equatable {
        /// Of the layers that its view can use, lowest first. At least one.
        var rates: [Double]
        /// Whether the publisher makes the highest layer of the stream smaller for this link: nobody else watches it.
        var isElastic = false
        var priority = 1.0
        /// The layer that it has now. Nil if that is not one of them.
        var current: Int?

        fileprivate func isElastic(_ rank: Int) -> Bool { isElastic && rank > 0 && rank == rates.count - 1 }
    }

    struct Choice: Equatable {
        /// The highest layer for which there is room.
        var rank = 0
        /// The share of that layer: the lowest one, or an elastic one. Nil if the link carries it whole, with headroom.
        var share: Double?
    }

    /// The rate that the streams can use together: each the next layer beyond its present one, and one of them its best one, so that
    /// the link is probed for it. A single video then need not rise one layer after the other.
    static func demand(audio: Double, videos: [Video]) -> Double {
        var (sum, further) = (audio, 0.0)
        for video in videos {
            let next = min((video.current ?? -1) + 1, video.rates.count - 1)
            sum += video.rates[next] * headroom
            further = max(further, (video.rates.last ?? 0) - video.rates[next])
        }
        return sum + further * headroom
    }

    static func choices(of target: Double, audio: Double, videos: [Video]) -> [Choice] {
        let lowest = videos.map { $0.rates[0] }
        var choices = shares(of: target, audio: audio, videos: lowest).map { Choice(share: $0) }
        guard videos.contains(where: { $0.rates.count > 1 }) else { return choices }
        var left = max(target * leastPart, target - audio)
        for (index, rate) in lowest.enumerated() { left -= choices[index].share ?? rate * headroom }
        while let index = nextUpgrade(videos, choices, left) {
            left -= cost(of: videos[index], from: choices[index].rank)
            choices[index].rank += 1
        }
        for (index, video) in videos.enumerated() where video.isElastic(choices[index].rank) {
            let rank = choices[index].rank
            let room = max(0, left) + need(of: video, rank)
            if room < video.rates[rank] * headroom { choices[index].share = room }
            left = max(0, room - video.rates[rank] * headroom)
        }
        return choices
    }

    /// The video that gets its next layer. Nil without one that fits.
    private static func nextUpgrade(_ videos: [Video], _ choices: [Choice], _ left: Double) -> Int? {
        var best: (index: Int, order: Double)?
        for (index, video) in videos.enumerated() where choices[index].share == nil {
            let rank = choices[index].rank
            guard rank + 1 < video.rates.count, cost(of: video, from: rank) <= left else { continue }
            let order = video.rates[rank + 1] / max(video.priority, 0.001)
            if order < best?.order ?? .infinity { best = (index, order) }
        }
        return best?.index
    }

    /// The rate for the next layer beyond that for this one.
    private static func cost(of video: Video, from rank: Int) -> Double {
        need(of: video, rank + 1) - need(of: video, rank)
    }

    private static func need(of video: Video, _ rank: Int) -> Double {
        let isHeld = rank > 0 && rank <= video.current ?? -1
        if video.isElastic(rank) { return video.rates[rank] * (isHeld ? leastElastic : elastic) }
        return video.rates[rank] * (isHeld ? persistence : headroom)
    }

    /// The share of each video's lowest layer. Nil if the link carries it whole, with headroom.
    static func shares(of target: Double, audio: Double, videos wishes: [Double]) -> [Double?] {
        var left = max(target * leastPart, target - audio)
        var shares = wishes.map { _ in Double?.none }
        let order = wishes.indices.sorted { wishes[$0] < wishes[$1] }
        for (place, index) in order.enumerated() {
            let equal = left / Double(wishes.count - place)
            let need = wishes[index] * headroom
            if need > equal { shares[index] = equal }
            left -= min(need, equal)
        }
        return shares
    }
}
