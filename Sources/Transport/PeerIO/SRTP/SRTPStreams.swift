/// Which of the newest numbers were seen (RFC 3711, section 3.3.2): the highest, and one bit for each of the `words`
/// times 64 numbers up to it.
package struct ReplayWindow<let words: Int>: Sendable {
    static var length: UInt64 { UInt64(words) * 64 }

    /// The highest number seen, or 0 before the first.
    package private(set) var highest: UInt64 = 0
    /// A ring: the bit of a number lies at the number modulo `length`.
    private var bits = InlineArray<words, UInt64>(repeating: 0)

    package init() {}

    /// Whether the number is neither seen nor too old to tell.
    package func admits(_ number: UInt64) -> Bool {
        guard number <= highest else { return true }
        return highest - number < Self.length && bits[Self.word(number)] & Self.bit(number) == 0
    }

    package mutating func insert(_ number: UInt64) {
        if number > highest {
            if number - highest >= Self.length {
                bits = InlineArray(repeating: 0)
            } else {
                var passed = highest
                while passed < number {
                    passed += 1
                    bits[Self.word(passed)] &= ~Self.bit(passed)
                }
            }
            highest = number
        }
        bits[Self.word(number)] |= Self.bit(number)
    }

    private static func word(_ number: UInt64) -> Int { Int(truncatingIfNeeded: (number / 64) % UInt64(words)) }

    private static func bit(_ number: UInt64) -> UInt64 { 1 << (number % 64) }
}

/// The state of one SSRC in one direction: rollover counter and replay windows of RTP and RTCP.
package struct SRTPStream: Sendable {
    /// How far a packet may be overtaken before it counts as a replay: more than a frame at any bitrate.
    package typealias PacketWindow = ReplayWindow<16>
    /// The window of RTCP, as libsrtp2 has it.
    package typealias ReportWindow = ReplayWindow<2>

    /// The indexes of 48 bits: the rollover counter above the sequence number.
    package var packets = PacketWindow()
    package var reports = ReportWindow()

    /// Longest step forward from a packet to the next whose rollover counter is certain.
    private static let half: UInt64 = 1 << 15

    package init() {}

    /// The index of a sequence number, near the highest index so far (RFC 3711, section 3.3.1 and appendix A). Nil if
    /// the rollover counter would exceed its 32 bits: the key is used up, and counting on would use its indexes again.
    package func index(of number: UInt16) -> UInt64? {
        let highest = packets.highest
        // In the first half turn nothing can be older than the first turn, so every number belongs to it.
        guard highest > Self.half else { return UInt64(number) }
        let turn = highest >> 16
        let last = highest & 0xffff
        let number = UInt64(number)
        if last < Self.half {
            guard number > last + Self.half else { return turn << 16 | number }
            return (turn - 1) << 16 | number
        }
        guard number < last - Self.half else { return turn << 16 | number }
        return turn < UInt64(UInt32.max) ? (turn + 1) << 16 | number : nil
    }
}

/// The streams of one direction, found by SSRC.
///
/// A packet's SSRC is mostly that of the packet before, and else one of a few dozen. A scan of numbers that lie side by
/// side finds it sooner than a dictionary does.
struct SRTPStreams {
    private var ssrcs: [UInt32] = []
    private var streams: [SRTPStream] = []
    /// The place that was found last.
    private var recent = 0

    /// The place of the SSRC's stream until the next `remove`. Nil without one.
    mutating func place(of ssrc: UInt32) -> Int? {
        if recent < ssrcs.count, ssrcs[recent] == ssrc { return recent }
        guard let place = ssrcs.firstIndex(of: ssrc) else { return nil }
        recent = place
        return place
    }

    /// Adds a stream for an SSRC that has none. Returns its place.
    mutating func add(_ ssrc: UInt32, _ stream: SRTPStream = SRTPStream()) -> Int {
        ssrcs.append(ssrc)
        streams.append(stream)
        recent = ssrcs.count - 1
        return recent
    }

    mutating func remove(_ ssrc: UInt32) {
        guard let place = ssrcs.firstIndex(of: ssrc) else { return }
        ssrcs.swapAt(place, ssrcs.count - 1)
        streams.swapAt(place, streams.count - 1)
        ssrcs.removeLast()
        streams.removeLast()
    }

    // Not `_read`: in debug builds, Swift 6.3 yields an unreadable `InlineArray`.
    subscript(place: Int) -> SRTPStream {
        get { streams[place] }
        _modify { yield &streams[place] }
    }
}
