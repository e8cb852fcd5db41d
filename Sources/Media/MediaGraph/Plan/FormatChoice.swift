/// A format that a source can deliver.
public struct FormatAlternative: Sendable, Hashable {
    /// The name in a plan, such as "its own h264".
    public var name: String
    /// The format.
    public var format: MediaFormat
    /// The work inside of the source, such as a decode.
    public var work: Work
    /// How far the format misses the settings, such as a rate that is too low. Compared before the work; 0 if it meets
    /// them.
    public var shortfall: Double

    /// A format with its name in plans.
    public init(_ name: String, _ format: MediaFormat, work: Work = .none, shortfall: Double = 0) {
        (self.name, self.format, self.work, self.shortfall) = (name, format, work, shortfall)
    }
}

/// The format that a source delivers to its consumers, with the reason and the rejected ones.
public struct FormatChoice: Sendable, Hashable {
    /// The place among the alternatives.
    public let index: Int
    /// The chosen format.
    public let alternative: FormatAlternative
    /// One sentence for the plan's notes. Nil without another alternative.
    public let reason: String?
    /// One sentence for each rejected alternative, the runner-up first.
    public let passedOver: [String]

    /// The chosen format alone.
    public var format: MediaFormat { alternative.format }
}

extension Demand {
    /// Returns the best of a source's alternatives: the one that meets the settings and needs the least work, of the source
    /// and of inserted nodes together. Among equals, the one that most consumers accept unchanged, then the one that they
    /// prefer, then the source's first one.
    ///
    /// Traps without an alternative. If no alternative suits all consumers, planning fails with the first one's clash.
    public func choice(among alternatives: [FormatAlternative]) -> FormatChoice {
        precondition(!alternatives.isEmpty, "a source without a format")
        let rated = alternatives.enumerated().map { Rating($1, at: $0, for: self) }.sorted()
        let best = rated[0]
        let isAlone = alternatives.count == 1
        return FormatChoice(
            index: best.index, alternative: best.alternative, reason: isAlone ? nil : reason(best),
            passedOver: rated.dropFirst().map { "\($0.alternative.name): \($0.lack(beside: best))" })
    }

    private func reason(_ best: Rating) -> String {
        let names = consumers.map(\.name)
        let consumers = names.isEmpty ? "" : " for \(names.joinedAsList)"
        return "\(best.alternative.name): \(best.work.map { "\($0)" } ?? "the only format")\(consumers)"
    }
}

/// The properties of an alternative that decide, the most important one first.
private struct Rating: Comparable {
    let alternative: FormatAlternative
    let index: Int
    /// Nil if a consumer cannot get it.
    let work: Work?
    private let served: Int
    private let distance: Int

    init(_ alternative: FormatAlternative, at index: Int, for demand: Demand) {
        self.alternative = alternative
        self.index = index
        work = demand.work(for: alternative.format).map { $0 + alternative.work }
        served = demand.served(by: alternative.format)
        distance = demand.distance(of: alternative.format)
    }

    static func < (left: Rating, right: Rating) -> Bool {
        switch (left.work, right.work) {
        case (nil, _?): return false
        case (_?, nil): return true
        case (nil, nil): return left.index < right.index
        case (let mine?, let other?):
            if left.alternative.shortfall != right.alternative.shortfall {
                return left.alternative.shortfall < right.alternative.shortfall
            }
            if mine != other { return mine < other }
            return (right.served, left.distance, left.index) < (left.served, right.distance, right.index)
        }
    }

    /// Why a better alternative is chosen.
    func lack(beside best: Rating) -> String {
        guard let work else { return "no inserted node can convert it for all consumers" }
        if alternative.shortfall != best.alternative.shortfall { return "further from the requested size and rate" }
        if work != best.work { return "needs \(work)" }
        if served != best.served { return "the same work, but fewer consumers accept it unchanged" }
        return distance != best.distance
            ? "the same work, but consumers prefer \(best.alternative.format.encoding)" : "the same work"
    }
}
