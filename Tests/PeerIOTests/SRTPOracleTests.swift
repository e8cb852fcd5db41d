import PeerIO
import PeerLoop
import PeerSession
import RTP
import Testing
import TestSupport

/// `OpenSSLSRTP` beside libsrtp2: the same bytes, and the same decisions.
struct SRTPOracleTests {
    @Test("both libraries seal to the same bytes and open each other's packets", arguments: SRTPProfile.allCases)
    func sameBytes(profile: SRTPProfile) throws {
        var random = Seeded(1)
        let ends = try Ends(profile, &random)
        // Begins just before a wrap, and passes several.
        var number = 65_533
        for round in 0..<400 {
            number += round < 20 ? 1 : Int.random(in: 1...300, using: &random)
            let payload = round <= 40 ? round : Int.random(in: 0...1400, using: &random)
            let clear = rtp(number, ssrc: UInt32(7 + round % 3), payload: payload, &random)
            let sealed = try #require(ends.seal(clear))
            try #require(sealed.count == clear.count + (profile == .aes128CMSHA1_80 ? 10 : 16))
            try #require(ends.open(sealed) == clear, "packet \(round)")
        }
    }

    @Test(
        "both libraries agree on lost, late, repeated, damaged and truncated packets", arguments: SRTPProfile.allCases)
    func sameDecisions(profile: SRTPProfile) throws { try Self.compareDecisions(profile, rounds: 3) }

    static func compareDecisions(_ profile: SRTPProfile, rounds: Int) throws {
        var random = Seeded(2)
        var opened = 0
        var refused = 0
        for round in 0..<rounds {
            let ends = try Ends(profile, &random)
            var number = [Int.random(in: 0...70, using: &random), 32_700, 65_500].randomElement(using: &random) ?? 0
            var flying: [[UInt8]] = []
            for _ in 0..<400 {
                // At times the sender leaps, so that a receiver that loses packets mistakes the rollover counter.
                number += Int.random(in: 0..<40, using: &random) == 0 ? 20_000 : Int.random(in: 1...3, using: &random)
                let repeated = Int.random(in: 0..<8, using: &random) == 0
                let back = repeated ? Int.random(in: 0...1100, using: &random) : 0
                let ssrc = UInt32.random(in: 1...2, using: &random)
                let clear = rtp(max(0, number - back), ssrc: ssrc, payload: 30, &random)
                if let sealed = ends.seal(clear) { flying.append(sealed) }
                for _ in 0..<2 {
                    guard var arriving = flying.randomElement(using: &random) else { continue }
                    switch Int.random(in: 0..<10, using: &random) {
                    case 0: arriving[arriving.indices.randomElement(using: &random) ?? 0] ^= 1 << UInt8(round % 8)
                    case 1: arriving.removeLast(Int.random(in: 1...arriving.count, using: &random))
                    default: break
                    }
                    if ends.open(arriving) != nil { opened += 1 } else { refused += 1 }
                }
                if flying.count > 30 { flying.removeFirst(Int.random(in: 0...10, using: &random)) }
            }
        }
        #expect(opened > 80 * rounds && refused > 80 * rounds, "\(opened) opened, \(refused) refused")
    }

    @Test("both libraries agree on RTCP: bytes, replays, damage and truncation", arguments: SRTPProfile.allCases)
    func reports(profile: SRTPProfile) throws {
        var random = Seeded(3)
        let ends = try Ends(profile, &random)
        var seen: [[UInt8]] = []
        for round in 0..<300 {
            // A compound: SRTCP reads no more than the first header.
            let length = round < 20 ? round * 4 : Int.random(in: 0...300, using: &random) * 4
            let clear: [UInt8] =
                [0x81, 200, 0, 6, 0, 0, 0, UInt8(round % 4)]
                + (0..<length).map { _ in .random(in: 0...255, using: &random) }
            let sealed = try #require(ends.sealReport(clear))
            seen.append(sealed)
            if round % 3 == 0 { continue }
            try #require(ends.openReport(sealed) == clear)
            try #require(ends.openReport(sealed) == nil, "a replay")
            // Skipped ones that arrive late, ones that are far too old, damaged and truncated ones.
            var other = seen[Int.random(in: max(0, round - 200)...round, using: &random)]
            if Bool.random(using: &random) { other[Int.random(in: 0..<other.count, using: &random)] ^= 0x80 }
            if Bool.random(using: &random) { other.removeLast(Int.random(in: 0...other.count, using: &random)) }
            _ = ends.openReport(other)
        }
    }

    @Test("SRTCP counts from 1 for each SSRC, marks encrypted packets, and refuses unmarked ones")
    func reportIndex() throws {
        var random = Seeded(4)
        let ends = try Ends(.aeadAES128GCM, &random)
        for (ssrc, index) in [(1, 1), (2, 1), (1, 2), (1, 3), (2, 2)] as [(UInt8, UInt8)] {
            let sealed = try #require(ends.sealReport([0x80, 201, 0, 1, 0, 0, 0, ssrc]))
            #expect(sealed.suffix(4) == [0x80, 0, 0, index])
            var unmarked = sealed
            unmarked[sealed.count - 4] = 0
            #expect(ends.openReport(unmarked) == nil)
            #expect(ends.openReport(sealed) != nil)
        }
    }

    @Test("both libraries agree on hostile lengths in the header", arguments: SRTPProfile.allCases)
    func hostileHeaders(profile: SRTPProfile) throws {
        var random = Seeded(5)
        let ends = try Ends(profile, &random)
        for round in 0..<1000 {
            var bytes = (0..<Int.random(in: 0...120, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            // Mostly short extensions, so that some of them fit.
            if bytes.count > 16, round % 4 != 0 {
                bytes[0] = 0x80 | bytes[0] & 0x1f
                let place = 12 + 4 * Int(bytes[0] & 0x0f) + 2
                if place + 1 < bytes.count { bytes[place] = 0 }
                if place + 1 < bytes.count { bytes[place + 1] %= 24 }
            }
            if bytes.count >= 12 {
                bytes.replaceSubrange(8..<12, with: [0, 0, UInt8(round >> 8), UInt8(round & 0xff)])
            }
            _ = ends.open(bytes)
            _ = ends.openReport(bytes)
            if let sealed = ends.seal(bytes) { #expect(ends.open(sealed) == bytes) }
            if let sealed = ends.sealReport(bytes) { #expect(ends.openReport(sealed) == bytes) }
        }
    }

    @Test(
        "a packet sealed from the store into a batch has the bytes of one sealed in place",
        arguments: SRTPProfile.allCases)
    func slab(profile: SRTPProfile) throws {
        var random = Seeded(6)
        let ends = try Ends(profile, &random)
        let (_, other) = try Ends.engines(profile, ends.material)
        for round in 0..<150 {
            let clear = rtp(65_450 + round, ssrc: 1, payload: Int.random(in: 0...200, using: &random), &random)
            let whole = try #require(ends.seal(clear))
            // The header is always in the slab; a retransmission has two bytes more.
            let parsed = RTPHeader(parsingProtected: packet(clear))
            let header = try #require(parsed).payloadOffset
            let written = Int.random(in: header...clear.count, using: &random)
            var head = packet(Array(clear[..<written]))
            let store = Array(clear[written...])
            var batch = DatagramBatch()
            batch.append([1, 2, 3])
            #expect(other.protectRTP(&head, store.span, into: &batch))
            #expect(batch.count == 2 && Array(batch[0]) == [1, 2, 3])
            #expect(Array(batch[1]) == whole)
            #expect(store == Array(clear[written...]))
        }
    }

    @Test("5,000 packets pass between the libraries in both directions", arguments: SRTPProfile.allCases)
    func crossing(profile: SRTPProfile) throws { try Self.cross(profile, packets: 5000) }

    static func cross(_ profile: SRTPProfile, packets: Int) throws {
        var random = Seeded(7)
        let ends = try Ends(profile, &random)
        let (far, mine) = (ends.farOracle, ends.mine)
        let (near, theirs) = (ends.oracle, ends.far)
        var buffer = PacketBuffer()
        _ = buffer.assign(rtp(0, ssrc: 1, payload: 60, &random))
        let length = buffer.count
        var number = 65_000
        for round in 0..<packets {
            number += 1 + Int(truncatingIfNeeded: random.next() % 16)
            buffer.setUInt16(UInt16(truncatingIfNeeded: number), at: 2)
            buffer.setUInt32(UInt32(round % 45), at: 8)
            buffer.count = length
            let isThere = mine.protectRTP(&buffer) && far.unprotectRTP(&buffer)
            // The clear packet, sealed by the other library in its own direction.
            let isBack = theirs.protectRTP(&buffer) && near.unprotectRTP(&buffer)
            guard isThere, isBack, buffer.count == length else {
                Issue.record("packet \(round)")
                return
            }
        }
    }
}

struct SRTPSoak {
    @Test("a million packets pass between the libraries in both directions", arguments: SRTPProfile.allCases)
    func million(profile: SRTPProfile) throws { try SRTPOracleTests.cross(profile, packets: 340_000) }

    @Test(
        "both libraries agree on 100 sessions of lost, late, repeated, damaged and truncated packets",
        arguments: SRTPProfile.allCases)
    func decisions(profile: SRTPProfile) throws {
        try SRTPOracleTests.compareDecisions(profile, rounds: 100)
    }
}

/// The limits of an engine and of its counters.
struct SRTPLimitTests {
    @Test("a key seals no more packets and reports than its limits allow", arguments: SRTPProfile.allCases)
    func keyLimits(profile: SRTPProfile) throws {
        var random = Seeded(8)
        var limits = OpenSSLSRTP.KeyLimits()
        #expect(limits.packets == 1 << 48 && limits.reports == 0x7fff_ffff)
        limits.packets = 3
        limits.reports = 2
        var keys = Ends.keys(profile, Ends.material(profile, &random), isFar: false)
        let engine = try OpenSSLSRTP(keys: &keys, limits: limits)
        let packets = (0..<5).map {
            apply(engine.protectRTP, to: rtp($0, ssrc: UInt32($0), payload: 9, &random)) != nil
        }
        #expect(packets == [true, true, true, false, false])
        let reports = (0..<4).map { apply(engine.protectRTCP, to: [0x80, 201, 0, 1, 0, 0, 0, $0]) != nil }
        #expect(reports == [true, true, false, false])
    }

    @Test("the rollover counter ends at 32 bits and does not start again")
    func lastTurn() {
        var stream = SRTPStream()
        let last: UInt64 = 1 << 48 - 1
        stream.packets.insert(last - 1)
        #expect(stream.index(of: 0xffff) == last)
        #expect(stream.index(of: 0xfffe) == last - 1)
        #expect(stream.packets.admits(last - 1) == false)
        #expect(stream.index(of: 0) == nil)
        #expect(stream.index(of: 0x7ffd) == nil)
        let oldest: UInt64 = 0xffff_ffff_7ffe
        #expect(stream.index(of: 0x7ffe) == oldest)
    }

    @Test("indexes follow the sender's across wraps, from any first number, with up to half a turn of loss or delay")
    func indexes() {
        var random = Seeded(9)
        for _ in 0..<50 {
            var stream = SRTPStream()
            var truth = Int.random(in: 0..<65_536, using: &random)
            stream.packets.insert(UInt64(truth))
            for _ in 0..<300 {
                let number = max(0, truth + Int.random(in: -32_767...32_767, using: &random))
                // Before the first half turn has passed, no number belongs to an earlier turn.
                guard truth > 32_768 || number < 65_536 else { continue }
                #expect(stream.index(of: UInt16(truncatingIfNeeded: number)) == UInt64(number))
                if number > truth {
                    truth = number
                    stream.packets.insert(UInt64(truth))
                }
            }
        }
    }

    @Test("a replay window admits each number once, and none that is older than its length")
    func window() {
        var random = Seeded(10)
        var window = ReplayWindow<2>()
        var seen: Set<UInt64> = []
        var highest: UInt64 = 0
        for _ in 0..<20_000 {
            let step = Int.random(in: 0..<50, using: &random) == 0 ? 200 : Int.random(in: -150...6, using: &random)
            let number = UInt64(max(0, Int(highest) + step))
            let isFresh = number > highest || highest - number < 128 && !seen.contains(number)
            #expect(window.admits(number) == isFresh)
            guard isFresh else { continue }
            window.insert(number)
            seen.insert(number)
            highest = max(highest, number)
            #expect(window.highest == highest)
        }
    }
}

/// An engine of each library at both ends, all with the keys of one handshake.
private struct Ends {
    let material: (near: [UInt8], far: [UInt8])
    let mine: OpenSSLSRTP
    let oracle: LibSRTP
    let far: OpenSSLSRTP
    let farOracle: LibSRTP

    init(_ profile: SRTPProfile, _ random: inout Seeded) throws {
        material = Self.material(profile, &random)
        (oracle, mine) = try Self.engines(profile, material)
        (farOracle, far) = try Self.engines(profile, material, isFar: true)
    }

    static func material(_ profile: SRTPProfile, _ random: inout Seeded) -> (near: [UInt8], far: [UInt8]) {
        func key() -> [UInt8] {
            (0..<(profile.keyLength + profile.saltLength)).map { _ in .random(in: 0...255, using: &random) }
        }
        return (key(), key())
    }

    static func keys(_ profile: SRTPProfile, _ material: (near: [UInt8], far: [UInt8]), isFar: Bool) -> SRTPKeys {
        // Copies of their own, because engines overwrite them.
        let (near, far) = (material.near.map { $0 }, material.far.map { $0 })
        return isFar
            ? SRTPKeys(profile: profile, local: far, remote: near)
            : SRTPKeys(profile: profile, local: near, remote: far)
    }

    static func engines(
        _ profile: SRTPProfile, _ material: (near: [UInt8], far: [UInt8]), isFar: Bool = false
    ) throws -> (LibSRTP, OpenSSLSRTP) {
        var first = keys(profile, material, isFar: isFar)
        var second = keys(profile, material, isFar: isFar)
        return (try LibSRTP(keys: &first), try OpenSSLSRTP(keys: &second))
    }

    private func agreed(_ first: [UInt8]?, _ second: [UInt8]?, _ what: @autoclosure () -> String) -> [UInt8]? {
        if first != second { Issue.record("OpenSSL and libsrtp2 differ: \(what())") }
        return first
    }

    func seal(_ packet: [UInt8]) -> [UInt8]? {
        agreed(apply(mine.protectRTP, to: packet), apply(oracle.protectRTP, to: packet), "sealing \(packet)")
    }

    func sealReport(_ packet: [UInt8]) -> [UInt8]? {
        agreed(apply(mine.protectRTCP, to: packet), apply(oracle.protectRTCP, to: packet), "sealing RTCP \(packet)")
    }

    func open(_ packet: [UInt8]) -> [UInt8]? {
        agreed(apply(far.unprotectRTP, to: packet), apply(farOracle.unprotectRTP, to: packet), "opening \(packet)")
    }

    func openReport(_ packet: [UInt8]) -> [UInt8]? {
        agreed(
            apply(far.unprotectRTCP, to: packet), apply(farOracle.unprotectRTCP, to: packet), "opening RTCP \(packet)")
    }
}

private func apply(_ operation: (inout PacketBuffer) -> Bool, to bytes: [UInt8]) -> [UInt8]? {
    var buffer = packet(bytes)
    guard operation(&buffer) else { return nil }
    return Array(buffer.bytes[..<buffer.count])
}

private func packet(_ bytes: [UInt8]) -> PacketBuffer {
    var buffer = PacketBuffer()
    precondition(buffer.assign(bytes, 0..<bytes.count))
    return buffer
}

/// A packet with CSRCs, extension and padding or without them.
private func rtp(_ number: Int, ssrc: UInt32, payload: Int, _ random: inout Seeded) -> [UInt8] {
    let csrcs = Bool.random(using: &random) ? 0 : Int.random(in: 0...15, using: &random)
    let words = Bool.random(using: &random) ? nil : Int.random(in: 0...6, using: &random)
    let padding = payload > 8 && Bool.random(using: &random) ? UInt8.random(in: 1...8, using: &random) : 0
    func noise(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: 0...255, using: &random) } }
    func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * $0)) } }
    var bytes: [UInt8] = [0x80 | UInt8(csrcs) | (words == nil ? 0 : 0x10) | (padding == 0 ? 0 : 0x20), 96]
    bytes += [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    bytes += word(UInt32(truncatingIfNeeded: number * 90)) + word(ssrc) + noise(4 * csrcs)
    if let words { bytes += [0xbe, 0xde, 0, UInt8(words)] + noise(4 * words) }
    bytes += noise(payload)
    if padding > 0 { bytes[bytes.count - 1] = padding }
    return bytes
}
