package import PeerSession
package import RTP

/// SRTP and SRTCP for one peer with OpenSSL (RFC 3711, RFC 7714). One thread at a time.
///
/// Allocates when an SSRC is new, never for a packet. Decides as libsrtp2 does about rollover and replays, and encrypts
/// to the same bytes, which tests compare. SRTCP that is not encrypted is refused: the profiles of DTLS-SRTP encrypt it.
package final class OpenSSLSRTP: SRTPEngine {
    /// How many packets one master key may protect (RFC 3711, section 9.2). More are refused.
    package struct KeyLimits: Sendable {
        package var packets: UInt64 = 1 << 48
        /// RTCP counts from 1 to 2^31 - 1 for each SSRC.
        package var reports: UInt64 = 1 << 31 - 1

        package init() {}
    }

    private let packetSealer: SRTPCipher
    private let reportSealer: SRTPCipher
    private let packetOpener: SRTPCipher
    private let reportOpener: SRTPCipher
    private let limits: KeyLimits
    private let tagLength: Int
    @exclusivity(unchecked) private var sent = SRTPStreams()
    @exclusivity(unchecked) private var received = SRTPStreams()
    @exclusivity(unchecked) private var sealedPackets: UInt64 = 0
    private var sealedReports: UInt64 = 0
    /// Checked in debug builds; empty in release builds.
    private var ledger = EncryptionLedger()

    package required convenience init(keys: inout SRTPKeys) throws {
        try self.init(keys: &keys, limits: KeyLimits())
    }

    package init(keys: inout SRTPKeys, limits: KeyLimits) throws {
        defer {
            wipe(&keys.local)
            wipe(&keys.remote)
        }
        let profile = keys.profile
        guard let packetSealer = SRTPCipher(profile, master: keys.local, for: .packets, to: .seal),
            let reportSealer = SRTPCipher(profile, master: keys.local, for: .reports, to: .seal),
            let packetOpener = SRTPCipher(profile, master: keys.remote, for: .packets, to: .open),
            let reportOpener = SRTPCipher(profile, master: keys.remote, for: .reports, to: .open)
        else {
            throw TransportError(code: "transport.srtp", message: "OpenSSL refused the keys that DTLS negotiated.")
        }
        self.packetSealer = packetSealer
        self.reportSealer = reportSealer
        self.packetOpener = packetOpener
        self.reportOpener = reportOpener
        self.limits = limits
        tagLength = profile.tagLength
        try super.init(keys: &keys)
    }

    // MARK: Sealing

    /// Encrypts an RTP packet into the batch with which it is sent. Nothing is written before the index is known to be
    /// unused.
    package override func protectRTP(
        _ head: inout PacketBuffer, _ rest: Span<UInt8>, into batch: inout DatagramBatch
    ) -> Bool {
        let written = head.count
        return head.bytes.withUnsafeBufferPointer { head in
            rest.withUnsafeBufferPointer { rest in
                batch.append(upTo: written + rest.count + tagLength) { slab in
                    slab.withUnsafeMutableBufferPointer { slab in
                        guard let from = head.baseAddress, let base = slab.baseAddress else { return nil }
                        base.update(from: from, count: written)
                        return seal(rest, after: written, in: slab)
                    }
                }
            }
        }
    }

    package override func protectRTP(_ packet: inout PacketBuffer) -> Bool {
        let count = packet.count
        let sealed = packet.bytes.withUnsafeMutableBufferPointer {
            seal(UnsafeBufferPointer(start: nil, count: 0), after: count, in: $0)
        }
        if let sealed { packet.count = sealed }
        return sealed != nil
    }

    private func seal(
        _ rest: UnsafeBufferPointer<UInt8>, after written: Int, in slab: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        guard written <= slab.count, rest.count <= slab.count - written,
            tagLength <= slab.count - written - rest.count,
            let base = slab.baseAddress, let header = Self.headerLength(base, count: written),
            sealedPackets < limits.packets
        else { return nil }
        let ssrc = Self.word(base + 8)
        let place = sent.place(of: ssrc) ?? sent.add(ssrc)
        let number = Self.number(base)
        guard let index = sent[place].index(of: number), sent[place].packets.admits(index) else { return nil }
        // First, so that a failure below cannot leave an index that is used again.
        sent[place].packets.insert(index)
        sealedPackets += 1
        assert(
            ledger.record(SSRC(ssrc), SequenceNumber(number)), "SRTP encrypted two packets under one index")
        guard
            packetSealer.sealPacket(base, header: header, written: written, rest: rest, ssrc: ssrc, index: index)
        else { return nil }
        return written + rest.count + tagLength
    }

    package override func protectRTCP(_ packet: inout PacketBuffer) -> Bool {
        let count = packet.count
        let length = count + tagLength + SRTPCipher.reportIndexLength
        let isSealed = packet.bytes.withUnsafeMutableBufferPointer { bytes in
            guard count >= SRTPCipher.reportHeaderLength, length <= bytes.count, let base = bytes.baseAddress,
                sealedReports < limits.reports
            else { return false }
            let ssrc = Self.word(base + 4)
            let place = sent.place(of: ssrc) ?? sent.add(ssrc)
            let index = sent[place].reports.highest + 1
            // First, as above.
            sent[place].reports.insert(index)
            sealedReports += 1
            return reportSealer.sealReport(
                base, count: count, ssrc: ssrc, index: UInt32(truncatingIfNeeded: index))
        }
        if isSealed { packet.count = length }
        return isSealed
    }

    // MARK: Opening

    package override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool {
        let count = packet.count - tagLength
        let isOpen = packet.bytes.withUnsafeMutableBufferPointer { bytes in
            guard count <= bytes.count - tagLength, let base = bytes.baseAddress,
                let header = Self.headerLength(base, count: count)
            else { return false }
            let ssrc = Self.word(base + 8)
            let place = received.place(of: ssrc)
            guard let index = unseenIndex(of: Self.number(base), at: place),
                packetOpener.openPacket(base, header: header, count: count, ssrc: ssrc, index: index)
            else { return false }
            // Only an authentic packet leaves a trace.
            received[place ?? received.add(ssrc)].packets.insert(index)
            return true
        }
        if isOpen { packet.count = count }
        return isOpen
    }

    /// The index of a received number. Nil if it was received before, is too old, or the key is used up. A stream
    /// without a place is new.
    private func unseenIndex(of number: UInt16, at place: Int?) -> UInt64? {
        guard let place else { return UInt64(number) }
        guard let index = received[place].index(of: number), received[place].packets.admits(index) else { return nil }
        return index
    }

    package override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool {
        let count = packet.count - tagLength - SRTPCipher.reportIndexLength
        let isOpen = packet.bytes.withUnsafeMutableBufferPointer { bytes in
            guard count >= SRTPCipher.reportHeaderLength, packet.count <= bytes.count,
                let base = bytes.baseAddress
            else { return false }
            let word = reportOpener.reportWord(base, count: count)
            guard word & SRTPCipher.encryptedReport != 0 else { return false }
            let index = word & ~SRTPCipher.encryptedReport
            let ssrc = Self.word(base + 4)
            let place = received.place(of: ssrc)
            if let place, !received[place].reports.admits(UInt64(index)) { return false }
            guard reportOpener.openReport(base, count: count, ssrc: ssrc, index: index) else { return false }
            received[place ?? received.add(ssrc)].reports.insert(UInt64(index))
            return true
        }
        if isOpen { packet.count = count }
        return isOpen
    }

    package override func forget(_ ssrc: SSRC) { received.remove(ssrc.rawValue) }

    // MARK: Headers

    /// The length of an RTP header with CSRCs and extension. Nil if it exceeds `count`.
    private static func headerLength(_ bytes: UnsafePointer<UInt8>, count: Int) -> Int? {
        guard count >= RTPHeader.minimumLength else { return nil }
        var length = RTPHeader.minimumLength + 4 * Int(bytes[0] & 0x0f)
        if bytes[0] & 0x10 != 0 {
            guard length + 4 <= count else { return nil }
            length += 4 + 4 * (Int(bytes[length + 2]) << 8 | Int(bytes[length + 3]))
        }
        return length <= count ? length : nil
    }

    private static func number(_ packet: UnsafePointer<UInt8>) -> UInt16 {
        UInt16(packet[2]) << 8 | UInt16(packet[3])
    }

    private static func word(_ bytes: UnsafePointer<UInt8>) -> UInt32 {
        UInt32(bytes[0]) << 24 | UInt32(bytes[1]) << 16 | UInt32(bytes[2]) << 8 | UInt32(bytes[3])
    }
}
