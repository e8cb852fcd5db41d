/// Decides which encoded frames enter a queue: those from the first keyframe on, and after a frame that found it full, those
/// from the next keyframe on.
struct KeyframeGate {
    private(set) var needsKeyframe = true

    /// Whether a frame passes.
    mutating func admits(isKeyframe: Bool, isFull: Bool) -> Bool {
        if isFull { needsKeyframe = true } else if isKeyframe { needsKeyframe = false }
        return !needsKeyframe
    }

    /// The next frames depend on others than the last ones.
    mutating func close() { needsKeyframe = true }
}
