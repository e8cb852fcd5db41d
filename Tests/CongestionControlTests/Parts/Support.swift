import RTP

@testable import CongestionControl

/// The time in milliseconds since the beginning of a test.
func at(_ milliseconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: UInt64(10_000_000_000 + Int64((milliseconds * 1e6).rounded())))
}

func milliseconds(_ n: Double) -> TimeInterval { TimeInterval(nanoseconds: Int64(n * 1e6)) }

/// A packet sent and arrived at these milliseconds. Without an arrival, it is missing.
func packet(
    _ number: Int, sent: Double, arrival: Double?, bytes: Int = 1200, probe: UInt16 = 0, wasMissing: Bool = false
) -> PacketResult {
    PacketResult(
        number: number, bytes: bytes, sent: at(sent), probe: probe, arrival: arrival.map { at($0) },
        wasMissing: wasMissing)
}

/// Feedback about packets from `base` on: their arrivals in milliseconds, nil for missing ones.
func feedback(base: UInt16, _ arrivals: [Double?], number: UInt8 = 0) -> TransportFeedback {
    let first = arrivals.compactMap { $0 }.first ?? 0
    let reference = UInt64(10_000 + first) / 64
    var previous = reference * 256
    var list: [TransportFeedback.Arrival] = []
    for (offset, arrival) in arrivals.enumerated() {
        guard let arrival else { continue }
        let ticks = UInt64(((10_000 + arrival) * 4).rounded())
        list.append(.init(offset: UInt16(offset), ticks: Int16(Int64(ticks) - Int64(previous))))
        previous = ticks
    }
    return TransportFeedback(
        sender: SSRC(1), media: SSRC(2), base: SequenceNumber(base), count: UInt16(arrivals.count),
        referenceTime: UInt32(reference) & 0xff_ffff, number: number, arrivals: list)
}
