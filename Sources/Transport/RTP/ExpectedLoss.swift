/// The share of a stream's packets that will be lost, as the reports of its receiver let expect, and the redundancy that is
/// worth its bits then. Rises within seconds and sinks slowly, so that neither changes with each report.
public struct ExpectedLoss: Sendable, Equatable {
    /// The weight of a report that is above the estimate, and of one below. A report of fewer packets than `usual`, a second
    /// of audio, weighs in proportion.
    static let rise = 0.3
    static let fall = 0.1
    static let usual = 50
    /// A number of copies begins at the first share and ends at the second. Below, in-band FEC mends single losses, and a copy
    /// costs three quarters of the bits.
    static let copies: [(from: Double, until: Double)] = [(0.03, 0.015), (0.08, 0.05)]
    /// For encoders, in percent. A step ends when the share is this part of the step below.
    static let steps = [2, 5, 10, 20, 30]
    static let part = 0.6

    /// 0...1. Nil before the first report.
    public private(set) var share: Double?
    /// How many of the packets before each packet carries again.
    public private(set) var copies = 0
    /// The loss for which an encoder prepares its packets, in percent. Nil before the first report.
    ///
    /// At least 2, so that a packet has a coarse copy of the one before (in-band FEC) also for receivers behind other links.
    public private(set) var percent: Int?

    public init() {}

    /// Takes the lost share of a report, 0...1, and the number of packets that it covers. Ignores a report of none.
    public mutating func report(_ lost: Double, packets: Int) {
        guard packets > 0 else { return }
        let lost = min(max(lost, 0), 1)
        let weight = min(Double(packets) / Double(Self.usual), 1)
        let share = share.map { $0 + (lost - $0) * (lost > $0 ? Self.rise : Self.fall) * weight } ?? lost * weight
        self.share = share
        while copies < Self.copies.count, share >= Self.copies[copies].from { copies += 1 }
        while copies > 0, share < Self.copies[copies - 1].until { copies -= 1 }
        let fitting = Self.steps.first { Double($0) >= share * 100 } ?? Self.steps[Self.steps.count - 1]
        guard let percent, fitting < percent else { return percent = fitting }
        let below = Self.steps.last { $0 < percent } ?? fitting
        if share * 100 < Double(below) * Self.part { self.percent = fitting }
    }
}
