/// The candidate that somebody probably meant; nil when none is close: at most a third of its letters may differ.
package func nearestWord(to word: String, among candidates: some Sequence<String>) -> String? {
    let written = Array(word.lowercased().unicodeScalars)
    var best: (word: String, distance: Int)?
    for candidate in candidates {
        let letters = Array(candidate.lowercased().unicodeScalars)
        let allowed = max(1, max(letters.count, written.count) / 3)
        guard abs(letters.count - written.count) <= allowed else { continue }
        let distance = editDistance(written, letters)
        if distance <= allowed, distance < best?.distance ?? Int.max { best = (candidate, distance) }
    }
    return best?.word
}

/// Letters inserted, left out, replaced, or swapped with their neighbour.
private func editDistance(_ first: [Unicode.Scalar], _ second: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...second.count)
    for (row, letter) in first.enumerated() {
        var current = [row + 1]
        for (column, other) in second.enumerated() {
            var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
            if row > 0, column > 0, letter == second[column - 1], first[row - 1] == other {
                cost = min(cost, beforeLast[column - 1] + 1)
            }
            current.append(cost)
        }
        beforeLast = last
        last = current
    }
    return last[second.count]
}
