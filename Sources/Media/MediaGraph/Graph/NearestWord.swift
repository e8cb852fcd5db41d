extension String {
    /// The longest word that is compared. Longer ones are not typing errors, and comparing them is slow.
    private static let longestComparedWord = 64

    /// The end of a sentence about this word, which is not among the candidates.
    package func suggestion(among candidates: some Sequence<String>, else end: String = ".") -> String {
        nearest(among: candidates).map { "; did you mean \"\($0)\"?" } ?? end
    }

    /// The candidate that was probably meant, or nil: the one with the fewest typing errors, else the only one that
    /// begins with this word or contains it as a part, such as `vp8-encoder` for `vp8`.
    public func nearest(among candidates: some Sequence<String>) -> String? {
        guard !isEmpty, utf8.count <= Self.longestComparedWord else { return nil }
        let word = Array(lowercased())
        let scored = candidates.filter { $0.utf8.count <= Self.longestComparedWord }
            .map { (name: $0, mistakes: typingMistakes(from: word, to: Array($0.lowercased()))) }
        if let best = scored.min(by: { $0.mistakes < $1.mistakes }),
            // A third of the letters; one of them in short words, of which some have to be right.
            best.mistakes <= Swift.max(1, word.count / 3), best.mistakes < word.count
        {
            return best.name
        }
        let beginnings = scored.filter { word.count > 2 && $0.name.lowercased().hasPrefix(lowercased()) }
        if beginnings.count == 1 { return beginnings[0].name }
        let parts = scored.filter { $0.name.lowercased().split(separator: "-").contains { Array($0) == word } }
        return parts.count == 1 ? parts[0].name : nil
    }
}

/// The number of wrong, missing, surplus and swapped characters (optimal string alignment).
private func typingMistakes(from word: [Character], to target: [Character]) -> Int {
    var earlier: [Int] = []
    var above = Array(0...target.count)
    for row in word.indices {
        var current = [row + 1]
        for column in target.indices {
            var least = Swift.min(
                above[column] + (word[row] == target[column] ? 0 : 1), above[column + 1] + 1, current[column] + 1)
            if row > 0, column > 0, word[row] == target[column - 1], word[row - 1] == target[column] {
                least = Swift.min(least, earlier[column - 1] + 1)
            }
            current.append(least)
        }
        earlier = above
        above = current
    }
    return above[target.count]
}
