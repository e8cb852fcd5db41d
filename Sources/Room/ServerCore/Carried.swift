/// How much of a stream a link carries, or the best one of several.
enum Carried: Sendable, Equatable {
    /// Nothing has measured it yet.
    case unknown
    case all
    /// In bits per second of the path.
    case part(Double)

    var part: Double? { if case .part(let rate) = self { rate } else { nil } }

    /// The better one of both.
    func joined(with other: Carried) -> Carried {
        switch (self, other) {
        case (.all, _), (_, .all): .all
        case (.part(let one), .part(let two)): .part(max(one, two))
        case (.unknown, let one), (let one, .unknown): one
        }
    }
}
