/// Whether a view shows a video whose frames arrive. A value that is told the time.
struct ViewActivity {
    /// How long after its last frame a video counts as gone.
    static let silence = Duration.seconds(2)

    private(set) var isActive = false
    private var last = Duration.zero

    /// A frame has arrived. Returns whether the view has become active.
    mutating func frame(at now: Duration) -> Bool {
        last = now
        defer { isActive = true }
        return !isActive
    }

    /// The view shows another video or none. Returns whether it was active.
    mutating func end() -> Bool {
        defer { isActive = false }
        return isActive
    }

    /// Returns the time after which to check again, or nil if the view is not active, as it may have become now.
    mutating func check(at now: Duration) -> Duration? {
        guard isActive else { return nil }
        let rest = Self.silence - (now - last)
        if rest <= .zero { isActive = false }
        return rest > .zero ? rest : nil
    }
}
