internal import RTP

/// The estimate that follows loss: the link's rate and its loss without congestion that explain best how much was lost
/// at which sending rate (libwebrtc's loss-based estimator v2, with its constants of July 2026).
///
/// Loss that does not depend on the sending rate, as on a bad radio link, hardly lowers it.
struct LossBasedEstimate: Sendable {
    enum State: Equatable {
        /// Loss does not limit the rate.
        case unlimited
        case decreasing
        /// The rate rises again, with padding that tests it.
        case increasing
    }

    static let neededObservations = 3
    static let candidates = [1.02, 1.0, 0.95]
    static let initialLoss = 0.01
    static let smallestLoss = 0.001
    /// The loss without congestion is at most `largestLossOffset` and this rate divided by the link's.
    static let largestLossOffset = 0.05
    static let balance = DataRate.kilobits(100)
    static let newtonStep = 0.75
    /// The preference for higher rates, per kbit/s and per its logarithm. It ends at `preferenceLoss`.
    static let preference = 0.0002
    static let logarithmicPreference = 0.02
    static let preferenceLoss = 0.2
    static let preferenceSmoothing = 0.002
    /// Growth while loss limits the rate: at most by this factor within `increaseTime`.
    static let maximumIncrease = 1.3
    static let increaseTime = TimeInterval.milliseconds(300)
    /// The estimate exceeds the acknowledged rate by at most these factors, the second after a hold below its rate.
    static let rampUp = 1.5
    static let rampUpInHold = 1.2
    /// Loss without congestion hides a part of the rate that was sent. In a hold, the estimate exceeds the rest by this factor
    /// at most, so that loss that came with a higher rate raises it no further.
    static let rampUpOfSent = 1.08
    /// How fast the least loss approaches the average, for each observation. It is known for about a minute.
    static let leastLossGrowth = 0.005
    static let holdThreshold = 1.3
    static let initialHold = TimeInterval.milliseconds(300)
    static let longestHold = TimeInterval.seconds(60)
    static let holdGrowth: Int64 = 2
    static let paddingTime = TimeInterval.seconds(2)

    private struct Channel {
        var rate: DataRate
        var loss: Double
    }

    /// Of the probabilities that a packet is lost, and that it is received.
    private struct Logarithms {
        let lost: Double
        let received: Double

        init(of loss: Double) { (lost, received) = (logarithm(loss), logarithm(1 - loss)) }
    }

    private struct Hold {
        var until = MonotonicTime.zero
        var length = LossBasedEstimate.initialHold
        var rate = DataRate.unlimited
    }

    private(set) var state = State.unlimited
    /// Nil before there are enough observations.
    var estimate: DataRate? { observations.total >= Self.neededObservations && best != nil ? result : nil }

    private var observations = LossObservations()
    private var best: Channel?
    private var result = DataRate.unlimited
    private var acknowledged: DataRate?
    private var delayBased = DataRate.unlimited
    private var minimum: DataRate
    private var maximum: DataRate
    private var hold = Hold()
    /// The least average loss since losses limit the rate: that of the link without congestion.
    private var leastLoss = 1.0
    private var padding: (rate: DataRate, since: MonotonicTime)?
    /// When the limit of growth began, and the limit.
    private var growth: (since: MonotonicTime, limit: DataRate)?

    /// Without `rampUpOfSent`.
    private let isPlain: Bool

    init(minimum: DataRate, maximum: DataRate, isPlain: Bool = false) {
        self.minimum = minimum
        self.maximum = maximum
        self.isPlain = isPlain
    }

    mutating func setLimits(minimum: DataRate, maximum: DataRate) {
        self.minimum = minimum
        self.maximum = maximum
    }

    var averageLoss: Double { observations.averageLoss }

    mutating func setAcknowledged(_ rate: DataRate) { acknowledged = rate }

    /// Adds the fates of packets in the order of their numbers.
    mutating func add(_ packets: [PacketResult], delayBased: DataRate, isApplicationLimited: Bool) {
        self.delayBased = delayBased
        guard observations.add(packets), let now = observations.newest else { return }
        if best == nil {
            guard delayBased.isLimited else { return }
            best = Channel(rate: delayBased, loss: Self.initialLoss)
            result = delayBased
        }
        guard let current = best else { return }
        var chosen = bestCandidate(current, isApplicationLimited, now)
        if observations.averageLoss > chosen.loss, current.rate < chosen.rate { chosen.rate = current.rate }
        noteLeastLoss()
        if state != .unlimited { limitGrowth(&chosen, current, now) }
        let bounded = max(lowerBound, min(chosen.rate, upperBound, delayBased))
        if bounded < chosen.rate {
            best = Channel(rate: bounded, loss: 0)
        } else {
            best = Channel(rate: max(chosen.rate, lowerBound), loss: chosen.loss)
        }
        conclude(bounded, now)
    }

    private var lowerBound: DataRate { max(acknowledged ?? .zero, minimum) }

    /// A link that loses much has no high rate, whatever explains it.
    private var upperBound: DataRate {
        let excess = observations.averageLoss - Self.largestLossOffset
        return excess > 0 ? DataRate(bitsPerSecond: Self.balance.bitsPerSecond / excess) : maximum
    }

    private mutating func noteLeastLoss() {
        let average = observations.averageLoss
        leastLoss =
            state == .unlimited ? 1 : min(average, leastLoss + (average - leastLoss) * Self.leastLossGrowth)
    }

    private var factorInHold: Double {
        isPlain ? Self.rampUpInHold : min(Self.rampUpInHold, Self.rampUpOfSent / (1 - leastLoss))
    }

    private mutating func limitGrowth(_ chosen: inout Channel, _ current: Channel, _ now: MonotonicTime) {
        if let growth, growth.since + Self.increaseTime > now { chosen.rate = min(chosen.rate, growth.limit) }
        guard isIncrease(from: current.rate, to: chosen.rate), let acknowledged else { return }
        let isBelowHold = hold.rate.isLimited && acknowledged < hold.rate * Self.holdThreshold
        let factor = isBelowHold ? factorInHold : Self.rampUp
        chosen.rate = max(current.rate, min(chosen.rate, acknowledged * factor))
        // A minimal rise ends the decrease, so that padding tests the rate.
        if state == .decreasing, chosen.rate == current.rate {
            chosen.rate = current.rate + DataRate(bitsPerSecond: 1)
        }
    }

    private func isIncrease(from old: DataRate, to new: DataRate) -> Bool {
        state != .unlimited && (old < new || (old == new && state == .increasing))
    }

    private mutating func conclude(_ bounded: DataRate, _ now: MonotonicTime) {
        if state == .decreasing, hold.until > now, bounded < delayBased {
            hold.rate = max(lowerBound, hold.rate)
            result = min(hold.rate, bounded)
            return
        }
        let isLimited = bounded < delayBased && bounded < maximum
        if isLimited, isIncrease(from: result, to: bounded), canKeepIncreasing(bounded, now) {
            if bounded > padding?.rate ?? .zero { padding = (bounded, now) }
            state = .increasing
        } else if isLimited {
            if state != .decreasing {
                hold = Hold(
                    until: now + hold.length, length: min(Self.longestHold, hold.length * Self.holdGrowth),
                    rate: bounded)
            }
            padding = nil
            state = .decreasing
        } else {
            hold = Hold()
            padding = nil
            state = .unlimited
        }
        result = bounded
        guard state != .unlimited, let best else { return }
        if let growth, growth.since + Self.increaseTime >= now { return }
        growth = (now, max(minimum, best.rate * Self.maximumIncrease))
    }

    private func canKeepIncreasing(_ rate: DataRate, _ now: MonotonicTime) -> Bool {
        guard state == .increasing, let padding else { return true }
        return padding.since + Self.paddingTime >= now || padding.rate < rate
    }
}

extension LossBasedEstimate {
    private func bestCandidate(_ current: Channel, _ isApplicationLimited: Bool, _ now: MonotonicTime) -> Channel {
        var limit = maximum
        if state != .unlimited, let growth { limit = growth.limit }
        limit = max(limit, current.rate)
        var chosen = current
        var chosenValue = -Double.infinity
        // Without losses, the likelihood grows with the rate, and a step of Newton's method ends below the smallest loss.
        let isLossless = !observations.hasLosses && current.loss <= Self.smallestLoss
        if isLossless { chosen.loss = Self.smallestLoss }
        func consider(_ rate: DataRate) {
            var candidate = Channel(rate: min(rate, limit), loss: current.loss)
            guard !isLossless else { return chosen.rate = max(chosen.rate, candidate.rate) }
            candidate.loss = feasible(candidate.loss, candidate.rate)
            candidate.loss = feasible(refined(candidate), candidate.rate)
            let value = likelihood(candidate)
            if value > chosenValue || (value == chosenValue && candidate.rate > chosen.rate) {
                (chosen, chosenValue) = (candidate, value)
            }
        }
        for factor in Self.candidates { consider(current.rate * factor) }
        let isPadding = padding.map { $0.since + Self.paddingTime >= now } ?? false
        if let acknowledged, !isApplicationLimited || isPadding { consider(acknowledged) }
        if delayBased.isLimited, delayBased > current.rate { consider(delayBased) }
        return chosen
    }

    private func feasible(_ loss: Double, _ rate: DataRate) -> Double {
        let largest = rate > .zero ? min(1, Self.largestLossOffset + Self.balance / rate) : 1
        return min(max(loss, Self.smallestLoss), largest)
    }

    /// The probability that a packet is lost at a sending rate.
    private func probability(_ channel: Channel, at rate: DataRate) -> Double {
        var loss = channel.loss
        if rate > channel.rate { loss += (1 - loss) * ((rate - channel.rate) / rate) }
        return min(max(loss, 1e-6), 1 - 1e-6)
    }

    /// One step of Newton's method towards the most likely loss.
    private func refined(_ channel: Channel) -> Double {
        var (first, second) = (0.0, 0.0)
        observations.forEach { observation, weight in
            let loss = probability(channel, at: observation.rate)
            let received = observation.sent - observation.lost
            first += weight * (observation.lost / loss - received / (1 - loss))
            second -= weight * (observation.lost / (loss * loss) + received / ((1 - loss) * (1 - loss)))
        }
        return second < 0 ? channel.loss - Self.newtonStep * first / second : channel.loss
    }

    private func likelihood(_ channel: Channel) -> Double {
        let bonus = preference(for: channel.rate)
        // Most observations are of rates that the channel carries, and logarithms are most of the work.
        let carried = Logarithms(of: probability(channel, at: channel.rate))
        var value = 0.0
        observations.forEach { observation, weight in
            let isCarried = observation.rate <= channel.rate
            let logarithms = isCarried ? carried : Logarithms(of: probability(channel, at: observation.rate))
            let received = observation.sent - observation.lost
            value += weight * (observation.lost * logarithms.lost + received * logarithms.received)
            value += weight * bonus * observation.sent
        }
        return value
    }

    private func preference(for rate: DataRate) -> Double {
        let distance = Self.preferenceLoss - observations.averageLoss
        let scale = distance / (Self.preferenceSmoothing + abs(distance))
        return scale
            * (Self.preference * rate.kilobits + Self.logarithmicPreference * logarithm(1 + rate.kilobits))
    }
}
