internal import PeerSession
internal import RTP

/// A stand-in for SRTP that checks what SRTP checks, without cryptography: a tag over key, index and packet, the rollover
/// counter as the receiver guesses it (RFC 3711, section 3.3.1), and replays (section 3.3.2). It reports a second packet
/// under one index, which would reveal both.
final class CheckedSRTP: SRTPEngine {
    private static let tagLength = 16
    fileprivate static let replayWindow = 1024

    private final class Source {
        private(set) var highest: Int?
        /// The indexes that arrived.
        private var seen = NumberWindow(length: CheckedSRTP.replayWindow)

        /// Notes an index. The window moves on with the highest one.
        func note(_ index: Int) {
            if let highest, index > highest { seen.remove((highest + 1)...index) }
            highest = max(index, highest ?? index)
            seen.insert(index)
        }

        func isReplay(_ index: Int) -> Bool {
            guard let highest else { return false }
            return index <= highest - CheckedSRTP.replayWindow || index <= highest && seen.contains(index)
        }

        /// RFC 3711, appendix A.
        func index(of number: Int) -> Int {
            guard let highest else { return number }
            let (cycle, last) = (highest >> 16, highest & 0xffff)
            let guess =
                last < 0x8000
                ? (number - last > 0x8000 ? cycle - 1 : cycle) : (last - 0x8000 > number ? cycle + 1 : cycle)
            return guess << 16 | number
        }
    }

    private let local: UInt64
    private let remote: UInt64
    private var sent: [UInt32: Source] = [:]
    private var received: [UInt32: Source] = [:]
    private var reports: UInt32 = 0
    private var receivedReports: Set<UInt64> = []
    private var ledger = EncryptionLedger()
    /// Called for a packet that reuses an index.
    var onReuse: ((String) -> Void)?

    required init(keys: inout SRTPKeys) throws {
        local = keys.local.span.mixed(from: 1)
        remote = keys.remote.span.mixed(from: 1)
        try super.init(keys: &keys)
    }

    override func protectRTP(_ packet: inout PacketBuffer) -> Bool {
        guard packet.count + Self.tagLength <= PacketBuffer.capacity else { return false }
        let ssrc = packet.uint32(at: 8)
        let number = Int(packet.uint16(at: 2))
        if !ledger.record(packet) { onReuse?("SRTP encrypts packet \(number) of SSRC \(ssrc) twice.") }
        let source = source(ssrc, in: &sent)
        let index = source.index(of: number)
        source.note(index)
        append(Self.tag(packet, index, local), to: &packet)
        return true
    }

    override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool {
        guard packet.count >= RTPHeader.minimumLength + Self.tagLength else { return false }
        let ssrc = packet.uint32(at: 8)
        // A packet that is not authentic leaves no trace.
        let source = received[ssrc] ?? Source()
        let index = source.index(of: Int(packet.uint16(at: 2)))
        guard index >= 0, !source.isReplay(index) else { return false }
        packet.count -= Self.tagLength
        guard packet.uint64(at: packet.count) == Self.tag(packet, index, remote) else { return false }
        source.note(index)
        received[ssrc] = source
        return true
    }

    override func protectRTCP(_ packet: inout PacketBuffer) -> Bool {
        guard packet.count + 4 + Self.tagLength <= PacketBuffer.capacity else { return false }
        reports += 1
        packet.setUInt32(reports, at: packet.count)
        packet.count += 4
        append(Self.tag(packet, Int(reports), local), to: &packet)
        return true
    }

    override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool {
        guard packet.count >= 8 + 4 + Self.tagLength else { return false }
        packet.count -= Self.tagLength
        let index = packet.uint32(at: packet.count - 4)
        let key = UInt64(packet.uint32(at: 4)) << 32 | UInt64(index)
        guard packet.uint64(at: packet.count) == Self.tag(packet, Int(index), remote),
            receivedReports.insert(key).inserted
        else { return false }
        packet.count -= 4
        return true
    }

    override func forget(_ ssrc: SSRC) { received[ssrc.rawValue] = nil }

    private func source(_ ssrc: UInt32, in sources: inout [UInt32: Source]) -> Source {
        if let source = sources[ssrc] { return source }
        let source = Source()
        sources[ssrc] = source
        return source
    }

    private func append(_ tag: UInt64, to packet: inout PacketBuffer) {
        packet.setUInt64(tag, at: packet.count)
        packet.setUInt64(0, at: packet.count + 8)
        packet.count += Self.tagLength
    }

    private static func tag(_ packet: borrowing PacketBuffer, _ index: Int, _ key: UInt64) -> UInt64 {
        packet.bytes.span.extracting(0..<packet.count).mixed(from: key ^ UInt64(index))
    }
}
