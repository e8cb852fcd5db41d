extension String {
    /// The longest text of a device, in characters: more than V4L2 and USB have.
    private static let longestOfDevice = 128

    /// The text of a device on one line of a terminal. Control characters are replaced, because a device could control the
    /// terminal with them. A longer text than a device has is cut.
    package var cleaned: String {
        func controls(_ letter: Character) -> Bool {
            letter.isNewline || letter.unicodeScalars.contains { $0.properties.generalCategory == .control }
        }
        if !contains(where: controls), count <= Self.longestOfDevice { return self }
        let short = prefix(Self.longestOfDevice).map { controls($0) ? "\u{fffd}" : $0 }
        return String(short) + (count > Self.longestOfDevice ? "…" : "")
    }
}
