/// How long to delay the playout of one received stream, so that nearly all of its frames are there in time.
///
/// It follows the arrivals of all packets, repaired ones included: the delay is that within which 99 of 100 frames were
/// complete, beyond the shortest delay of the path. It rises at once, sinks slowly, and is at most `maximum`. So a stream
/// without jitter and losses is not delayed, and one whose losses are repaired waits for the repairs. Two kinds of late
/// frames do not count, because a delay of all frames costs more than it saves:
///
/// - **Large frames.** The sender's pacer and narrow links spread a frame over time, and hold up the next ones. A frame is
///   late only by the rest of its lateness.
/// - **Stalls.** After a gap, many frames arrive together. However many they are, they count as 6 of a thousand. So one
///   stall buys no delay, and two within the memory do. A stall longer than any delay does not count, nor does the second
///   after it.
///
/// Has no clock: the caller tells the times. Costs no allocation per packet.
package struct PlayoutDelay: Sendable {
    /// In seconds. As `RepairBounds.playoutDelay` of the transport, which is independent of media.
    package static let maximum = 0.4
    /// The share of frames that are to be in time.
    private static let share = 0.99
    /// In seconds.
    private static let bucket = 0.01
    /// A frame that is late by fewer seconds is in time: nobody sees it, and encoders take longer for some frames.
    private static let tolerance = 0.01
    /// Packets of a frame that follow each other within so many seconds are spread, not late.
    private static let spreading = 0.03
    /// The most that the frames behind one gap count, as a share of all.
    private static let stallShare = 0.006
    /// A frame whose lateness falls by more seconds than this came together with the one before.
    private static let catchingUp = 0.002
    /// In seconds, from the last packet that came too late for any delay.
    private static let outageEnd = 1.0
    /// A number that is so much lower is not late: the numbers began again.
    private static let reordering = 3000
    private static let buckets = Int(maximum / bucket) + 1
    /// After so many seconds, a frame counts a third of a new one. Less at first, because the first frames, with a
    /// keyframe and on a path that is not measured yet, say little about later ones.
    private static let memory = (first: 2.0, growth: 0.4, longest: 15.0)
    /// Seconds per second.
    private static let sinking = 0.02
    /// The shortest delay of the path is that of the last one to two of these, in seconds: clocks drift.
    private static let baseSpan = 20.0
    /// The frames whose packets may still arrive.
    private static let frames = 64
    /// A transit that differs by more seconds is that of other timestamps: the stream restarted.
    private static let jump = 5.0

    private struct Frame {
        var timestamp: Int64
        var bucket: Int
        var weight: Double
        /// The part of its lateness that its packets' spreading explains, in seconds.
        var spread: Double
    }

    /// The newest packet in order.
    private struct Head {
        var number: UInt16
        var timestamp: Int64
        var time: MediaTime
        /// As that of its frame.
        var spread = 0.0
        /// In seconds, without the spread.
        var lateness = 0.0
        /// The weight of the late frames since the gap behind which they come.
        var counted = 0.0
    }

    private let clockRate: Double
    /// The delay in seconds.
    package private(set) var target = 0.0
    private var histogram = [Double](repeating: 0, count: buckets)
    private var total = 0.0
    /// The delay within which the share of frames arrived, and when it was computed.
    private var quantile = 0.0
    private var quantileAt: MediaTime?
    /// Between two computations without a late frame, in seconds.
    private static let interval = 0.1
    /// Of a frame now. Grows, so that earlier ones count less.
    private var weight = 1.0
    /// A ring.
    private var recent: [Frame] = []
    private var next = 0
    /// Without wrap.
    private var newest: Int64?
    private var lastTime: MediaTime?
    private var head: Head?
    private var outageUntil: MediaTime?
    /// The shortest transits, in seconds: of this span and of the one before.
    private var bases: (now: Double, before: Double) = (.infinity, .infinity)
    private var baseSince: MediaTime?
    /// Subtracted from times, so that differences are exact.
    private var began: (time: MediaTime, timestamp: Int64)?

    /// - Parameter clockRate: units of the timestamps per second.
    package init(clockRate: Int) {
        self.clockRate = Double(clockRate)
        recent.reserveCapacity(Self.frames)
    }

    /// Notes the arrival of a packet, repaired or not.
    ///
    /// - Parameters:
    ///   - timestamp: the packet's RTP timestamp.
    ///   - number: its sequence number. A repaired packet has that of the lost one.
    ///   - time: of arrival. Does not go back.
    package mutating func arrived(_ timestamp: UInt32, number: UInt16, at time: MediaTime) {
        var unwrapped = unwrap(timestamp)
        if began != nil, base < .infinity, abs(transit(of: unwrapped, at: time) - base) > Self.jump {
            restart()
            unwrapped = unwrap(timestamp)
        }
        if began == nil { began = (time, unwrapped) }
        age(to: time)
        let transit = transit(of: unwrapped, at: time)
        bases.now = min(bases.now, transit)
        let isLater = isLater(number)
        let lateness =
            isLater
            ? follow(unwrapped, number, transit - base, at: time)
            : max(0, transit - base - (place(of: unwrapped).map { recent[$0].spread } ?? 0) - Self.tolerance)
        // No delay would have been long enough.
        if isLater, lateness > Self.maximum { outageUntil = time + .nanoseconds(Int64(Self.outageEnd * 1e9)) }
        if let outageUntil, time < outageUntil { return }
        guard lateness <= Self.maximum else { return }
        let bucket = min(Self.buckets - 1, Int((lateness / Self.bucket).rounded(.up)))
        let isLate = note(unwrapped, bucket, isLater: isLater) && Double(bucket) * Self.bucket > target
        if isLate || quantileAt.map({ time.seconds(since: $0) >= Self.interval }) ?? true {
            quantile = computedQuantile
            quantileAt = time
        }
        target = max(target, quantile)
    }

    /// Whether a packet follows the newest one. Otherwise it was repaired, or overtaken.
    private func isLater(_ number: UInt16) -> Bool {
        guard let head else { return true }
        let distance = Int(Int16(bitPattern: number &- head.number))
        return distance > 0 || distance < -Self.reordering
    }

    /// Returns the lateness of a packet in order, in seconds, without the part that comes from the spreading of frames.
    private mutating func follow(_ timestamp: Int64, _ number: UInt16, _ behind: Double, at time: MediaTime) -> Double {
        var next = Head(number: number, timestamp: timestamp, time: time)
        if let head {
            let isSameFrame = head.timestamp == timestamp
            let gap = time.seconds(since: head.time)
            next.spread = min(behind, head.spread + (isSameFrame && gap <= Self.spreading ? gap : 0))
            next.lateness = max(0, behind - next.spread - Self.tolerance)
            let isTogether =
                isSameFrame ? next.lateness <= head.lateness : next.lateness < head.lateness - Self.catchingUp
            if isTogether, next.lateness > 0 { next.counted = head.counted }
        } else {
            next.lateness = max(0, behind - Self.tolerance)
        }
        head = next
        return next.lateness
    }

    /// When to play a frame that is complete: not later than `maximum` from now.
    package func due(_ timestamp: UInt32, now: MediaTime) -> MediaTime {
        guard let newest, let began else { return now }
        let unwrapped = newest + Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: newest)))
        let elapsed = Double(unwrapped - began.timestamp) / clockRate + base + target
        // A frame from before a restart has other timestamps.
        let latest = now + .nanoseconds(Int64(Self.maximum * 1e9))
        return min(began.time + .nanoseconds(Int64(elapsed * 1e9)), latest)
    }

    /// Forgets the path and the stream's timestamps, not the delay.
    private mutating func restart() {
        (newest, began, baseSince) = (nil, nil, nil)
        (head, outageUntil) = (nil, nil)
        bases = (.infinity, .infinity)
        recent.removeAll(keepingCapacity: true)
        next = 0
    }

    private var base: Double { min(bases.now, bases.before) }

    private mutating func unwrap(_ timestamp: UInt32) -> Int64 {
        guard let newest else {
            self.newest = Int64(timestamp)
            return Int64(timestamp)
        }
        let unwrapped = newest + Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: newest)))
        self.newest = max(newest, unwrapped)
        return unwrapped
    }

    private func transit(of timestamp: Int64, at time: MediaTime) -> Double {
        guard let began else { return 0 }
        return time.seconds(since: began.time) - Double(timestamp - began.timestamp) / clockRate
    }

    private mutating func age(to time: MediaTime) {
        let elapsed = lastTime.map { max(0, time.seconds(since: $0)) } ?? 0
        lastTime = time
        let age = began.map { time.seconds(since: $0.time) } ?? 0
        let memory = min(max(Self.memory.first, Self.memory.growth * age), Self.memory.longest)
        weight *= 1 + elapsed / memory
        if weight > 1e9 {
            for index in histogram.indices { histogram[index] /= weight }
            for index in recent.indices { recent[index].weight /= weight }
            head?.counted /= weight
            total /= weight
            weight = 1
        }
        target = max(quantile, target - elapsed * Self.sinking)
        guard let since = baseSince else { return baseSince = time }
        guard time.seconds(since: since) >= Self.baseSpan else { return }
        baseSince = time
        // After a silence, the clocks may have drifted.
        let isLong = time.seconds(since: since) >= 2 * Self.baseSpan
        bases = (.infinity, isLong ? .infinity : bases.now)
    }

    /// A frame is as late as its last packet. Returns whether the packet is the latest one of its frame.
    private mutating func note(_ timestamp: Int64, _ bucket: Int, isLater: Bool) -> Bool {
        let known = place(of: timestamp)
        if let known, isLater, let head { recent[known].spread = head.spread }
        let before = known.map { recent[$0].bucket } ?? -1
        guard bucket > before else { return false }
        var share = known.map { recent[$0].weight } ?? weight
        if bucket > 0, isLater, let head {
            share = min(share, max(0, total * Self.stallShare - head.counted))
            self.head?.counted += share
        }
        histogram[bucket] += share
        if let known {
            histogram[before] -= share
            (recent[known].bucket, recent[known].weight) = (bucket, share)
            return true
        }
        total += share
        let spread = isLater ? head?.spread ?? 0 : 0
        let frame = Frame(timestamp: timestamp, bucket: bucket, weight: share, spread: spread)
        if recent.count < Self.frames {
            recent.append(frame)
        } else {
            recent[next] = frame
        }
        next = (next + 1) % Self.frames
        return true
    }

    /// Most packets are of the newest frame.
    private func place(of timestamp: Int64) -> Int? {
        var back = 1
        while back <= recent.count {
            let index = (next + Self.frames - back) % Self.frames
            if recent[index].timestamp == timestamp { return index }
            back += 1
        }
        return nil
    }

    private var computedQuantile: Double {
        var rest = total * (1 - Self.share)
        var index = Self.buckets - 1
        while index > 0 {
            rest -= histogram[index]
            if rest < 0 { return Double(index) * Self.bucket }
            index -= 1
        }
        return 0
    }
}
