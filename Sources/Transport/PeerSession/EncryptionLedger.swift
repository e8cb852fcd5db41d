package import RTP

/// Records which RTP packets one SRTP key has encrypted, to prove that no index is used twice.
///
/// SRTP derives keystream and nonce from the key, the SSRC and the 48-bit packet index. Two packets under one index
/// reveal their difference, and under GCM also the authentication key (RFC 3711, section 9.1; RFC 7714, section 8.4).
/// Debug builds and tests record every packet. SRTCP needs no record, because the engine itself counts its indexes.
package struct EncryptionLedger {
    /// Indexes of one SSRC. The array is a ring with one bit for each of the newest 32768 indexes. RFC 3711, section
    /// 3.3.1 counts an older number as one of the next cycle.
    private struct Source {
        private var unwrapper = SequenceUnwrapper()
        private var used = NumberWindow(length: 1 << 15)

        mutating func record(_ number: SequenceNumber) -> Bool {
            let highest = unwrapper.highest
            let index = unwrapper.unwrap(number)
            if let highest, index > highest { used.remove((highest + 1)...index) }
            defer { used.insert(index) }
            return !used.contains(index)
        }
    }

    private var sources: [SSRC: Source] = [:]

    package init() {}

    /// Records the packet's SSRC and index. Returns false if this key has encrypted that index before.
    package mutating func record(_ packet: borrowing PacketBuffer) -> Bool {
        guard packet.count >= RTPHeader.minimumLength else { return false }
        return record(SSRC(packet.uint32(at: 8)), SequenceNumber(packet.uint16(at: 2)))
    }

    /// Records the number of a packet. Returns false if this key has encrypted that index before.
    package mutating func record(_ ssrc: SSRC, _ number: SequenceNumber) -> Bool {
        sources[ssrc, default: Source()].record(number)
    }
}
