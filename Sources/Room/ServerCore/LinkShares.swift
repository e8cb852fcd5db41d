/// Splits what one subscriber's link carries among the streams that it receives: audio first, and then an equal share for
/// each video. The rate that a video does not need goes to the others (max-min fairness).
///
/// Rates are bits per second of the path.
struct LinkShares {
    /// A video may become larger with the scene.
    static let headroom = 1.25
    /// The least part of the link that the videos get, however much audio there is.
    private static let leastPart = 0.2

    /// The rate that the streams can use together.
    static func demand(audio: Double, videos wishes: [Double]) -> Double {
        wishes.reduce(audio) { $0 + $1 * headroom }
    }

    /// The share of each video. Nil if the link carries it whole, with headroom.
    static func shares(of target: Double, audio: Double, videos wishes: [Double]) -> [Double?] {
        var left = max(target * leastPart, target - audio)
        var shares = [Double?](repeating: nil, count: wishes.count)
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
