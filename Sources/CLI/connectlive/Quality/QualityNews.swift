internal import MediaGraph

/// Prints the quality of the outgoing video whenever its size or rate changes, and keeps it for `connectlive why`.
struct QualityNews {
    private var told: VideoQuality?

    mutating func tell(_ quality: VideoQuality?) {
        guard let quality else { return }
        if let told, !quality.looks(like: told) {
            Console.line("\(quality)")
            QualityChanges.shared.note("\(quality)")
        }
        told = quality
    }
}

extension VideoQuality {
    /// Whether a viewer sees the same size at the same rate.
    fileprivate func looks(like other: VideoQuality) -> Bool {
        (width, height, layers) == (other.width, other.height, other.layers)
            && abs((framesPerSecond ?? 0) - (other.framesPerSecond ?? 0)) < 0.05
    }
}
