internal import RoomClient

/// The lines about the bitrate of the outgoing audio: one when the network carries less, and one when it carries all again.
struct AudioNews {
    /// How often in a row the bitrate has to be lower, or whole again.
    private static let patience = 3
    /// No line in so many looks after an outage: the estimate of the network begins again then, and the bitrate with it.
    private static let settling = 20
    /// Listeners hear less, from this share of the wished rate on.
    private static let coarse = 0.7

    /// Whether a line has told that the network carries too little.
    private var isTight = false
    private var looks = 0
    /// How many looks without a line are left.
    private var settling = 0

    /// Media does not flow, or did not since the last look.
    mutating func wasInterrupted() { (looks, settling) = (0, Self.settling) }

    /// The line for the present bitrate, if there is news. Called about twice a second.
    ///
    /// - Parameter carried: the bits per second that the network carries. Nil if that is unknown.
    mutating func line(_ audio: RoomStatistics.Published, _ carried: Double?) -> String? {
        settling = max(0, settling - 1)
        guard let wish = audio.wishedBitsPerSecond else { return nil }
        let rate = min(wish, audio.limitedBitsPerSecond ?? wish)
        looks = (isTight ? rate == wish : rate < wish * Self.coarse) ? looks + 1 : 0
        guard looks >= Self.patience, settling == 0 else { return nil }
        (isTight, looks) = (!isTight, 0)
        guard isTight else { return "full quality: audio at \(Self.kilobits(rate))" }
        return "the network carries \(carried.map(Self.kilobits) ?? "too little"): audio at \(Self.kilobits(rate))"
    }

    private static func kilobits(_ rate: Double) -> String { "\(Int((rate / 1000).rounded())) kbit/s" }
}
