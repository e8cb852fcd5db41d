import PeerIO
import PeerLoop
import PeerSession
import RTP
import Testing

struct SRTPTests {
    private func pair(
        _ profile: SRTPProfile, _ library: SRTPLibrary
    ) throws -> (SRTPEngine, SRTPEngine) {
        let length = profile.keyLength + profile.saltLength
        let a = (0..<length).map { UInt8($0) }
        let b = (0..<length).map { UInt8(200 - $0) }
        var keys = SRTPKeys(profile: profile, local: a, remote: b)
        var mirrored = SRTPKeys(profile: profile, local: b, remote: a)
        switch library {
        case .openSSL: return (try OpenSSLSRTP(keys: &keys), try OpenSSLSRTP(keys: &mirrored))
        case .libSRTP2: return (try LibSRTP(keys: &keys), try LibSRTP(keys: &mirrored))
        }
    }

    private func packet(_ number: UInt16, payload: Int = 1000) -> [UInt8] {
        [0x80, 96, UInt8(number >> 8), UInt8(number & 0xff), 0, 0, 0, 1, 1, 2, 3, 4]
            + [UInt8](repeating: 0x5a, count: payload)
    }

    private func apply(
        _ operation: (inout PacketBuffer) -> Bool, to bytes: some Collection<UInt8>
    ) -> [UInt8]? {
        var buffer = PacketBuffer()
        guard buffer.assign(bytes), operation(&buffer) else { return nil }
        return Array(buffer.bytes[..<buffer.count])
    }

    @Test(
        "packets protected by one end are readable by the other, RTP and RTCP", arguments: SRTPProfile.allCases,
        SRTPLibrary.allCases)
    func roundTrip(profile: SRTPProfile, library: SRTPLibrary) throws {
        let (a, b) = try pair(profile, library)
        let clear = packet(1)
        let protected = try #require(apply(a.protectRTP, to: clear))
        #expect(protected.count == clear.count + (profile == .aes128CMSHA1_80 ? 10 : 16))
        #expect(protected[12..<100] != clear[12..<100])
        #expect(apply(b.unprotectRTP, to: protected) == clear)

        let report: [UInt8] = [0x80, 201, 0, 1, 1, 2, 3, 4]
        let protectedReport = try #require(apply(b.protectRTCP, to: report))
        #expect(apply(a.unprotectRTCP, to: protectedReport) == report)
    }

    @Test(
        "a receiver that misses the first ten packets reads the eleventh, whatever the publisher's first number",
        arguments: SRTPLibrary.allCases)
    func firstPacketsLost(library: SRTPLibrary) throws {
        var random = SystemRandomNumberGenerator()
        for round in 0..<500 {
            let (server, subscriber) = try pair(.aeadAES128GCM, library)
            var splice = Splice(firstSequenceNumber: Splice.randomStart(using: &random))
            splice.begin(clockRate: 48000, clock: nil)
            // Some of the first sequence numbers wrap within the lost packets.
            let first = round < 16 ? 65520 + round : Int.random(in: 0...65535)
            for index in 0..<12 {
                let arrived = Splice.Packet(
                    position: StreamPosition(epoch: 0, number: 65536 + first + index), timestamp: RTPTimestamp(0),
                    isNewest: true, payload: .independent)
                let taken = splice.take(arrived, now: .zero)
                let numbers = try #require(taken)
                let clear = packet(numbers.sequenceNumber.rawValue, payload: 20)
                let protected = try #require(apply(server.protectRTP, to: clear))
                if index >= 10 { try #require(apply(subscriber.unprotectRTP, to: protected) == clear) }
            }
        }
    }

    @Test(
        "a receiver that misses packets of a publisher whose numbers jump keeps the rollover counter",
        arguments: SRTPLibrary.allCases)
    func leapingPublisher(library: SRTPLibrary) throws {
        let (server, subscriber) = try pair(.aeadAES128GCM, library)
        var splice = Splice(firstSequenceNumber: SequenceNumber(0x3fff))
        splice.begin(clockRate: 48000, clock: nil)
        for index in 0..<200 {
            let arrived = Splice.Packet(
                position: StreamPosition(epoch: 0, number: 65536 + index * ReceptionStatistics.maximumDropout),
                timestamp: RTPTimestamp(0), isNewest: true, payload: .independent)
            let taken = splice.take(arrived, now: .zero)
            let clear = packet(try #require(taken).sequenceNumber.rawValue, payload: 20)
            let protected = try #require(apply(server.protectRTP, to: clear))
            if (50..<100).contains(index) { continue }
            try #require(apply(subscriber.unprotectRTP, to: protected) == clear, "packet \(index)")
        }
    }

    @Test("other code in the process may have initialised the library, as GStreamer's plugin does")
    func setUpBefore() throws {
        #expect(LibSRTP.setUp())
        #expect(LibSRTP.setUp())
        let (a, b) = try pair(.aeadAES128GCM, .libSRTP2)
        #expect(apply(b.unprotectRTP, to: try #require(apply(a.protectRTP, to: packet(1)))) == packet(1))
    }

    @Test(
        "a changed byte, a replay and a packet of the other direction are refused", arguments: SRTPProfile.allCases,
        SRTPLibrary.allCases)
    func refusals(profile: SRTPProfile, library: SRTPLibrary) throws {
        let (a, b) = try pair(profile, library)
        let bytes = try #require(apply(a.protectRTP, to: packet(1)))
        for index in [1, 11, 12, bytes.count - 1] {
            var damaged = bytes
            damaged[index] ^= 1
            #expect(apply(b.unprotectRTP, to: damaged) == nil)
        }
        #expect(apply(a.unprotectRTP, to: bytes) == nil)
        #expect(apply(b.unprotectRTP, to: bytes) != nil)
        #expect(apply(b.unprotectRTP, to: bytes) == nil)
    }

    @Test(
        "packets that are too short or too long are not accessed beyond their end", arguments: SRTPProfile.allCases,
        SRTPLibrary.allCases)
    func lengths(profile: SRTPProfile, library: SRTPLibrary) throws {
        let (a, b) = try pair(profile, library)
        for length in 0..<40 {
            #expect(apply(b.unprotectRTP, to: packet(9).prefix(length)) == nil)
            #expect(apply(b.unprotectRTCP, to: packet(9).prefix(length)) == nil)
        }
        let full = packet(2, payload: PacketBuffer.capacity - 12)
        #expect(apply(a.protectRTP, to: full) == nil)
        #expect(apply(a.protectRTCP, to: full) == nil)
    }

    @Test(
        "no two packets are encrypted under one index of one stream", arguments: SRTPProfile.allCases,
        SRTPLibrary.allCases)
    func repeatedNumber(profile: SRTPProfile, library: SRTPLibrary) throws {
        let (a, _) = try pair(profile, library)
        var other = packet(1)
        other[50] = 0
        #expect(apply(a.protectRTP, to: packet(1)) != nil)
        #expect(apply(a.protectRTP, to: other) == nil)
        #expect(apply(a.protectRTP, to: packet(1)) == nil)
        #expect(apply(a.protectRTP, to: packet(2)) != nil)
    }

    @Test(
        "a forgotten stream leaves no context, so that its first packet decrypts again",
        arguments: SRTPLibrary.allCases)
    func forgetting(library: SRTPLibrary) throws {
        let (a, b) = try pair(.aeadAES128GCM, library)
        let bytes = try #require(apply(a.protectRTP, to: packet(1)))
        #expect(apply(b.unprotectRTP, to: bytes) != nil)
        #expect(apply(b.unprotectRTP, to: bytes) == nil)
        b.forget(SSRC(0x0403_0201))
        #expect(apply(b.unprotectRTP, to: bytes) == nil, "another stream was forgotten")
        b.forget(SSRC(0x0102_0304))
        #expect(apply(b.unprotectRTP, to: bytes) == packet(1))
    }

    @Test(
        "the keys are overwritten in place after the engine has copied them", arguments: SRTPProfile.allCases,
        SRTPLibrary.allCases)
    func wipedKeys(profile: SRTPProfile, library: SRTPLibrary) throws {
        let length = profile.keyLength + profile.saltLength
        var keys = SRTPKeys(
            profile: profile, local: [UInt8](repeating: 1, count: length),
            remote: [UInt8](repeating: 2, count: length))
        func places() -> [UnsafeRawPointer?] {
            [keys.local.withUnsafeBytes { $0.baseAddress }, keys.remote.withUnsafeBytes { $0.baseAddress }]
        }
        let before = places()
        switch library {
        case .openSSL: _ = try OpenSSLSRTP(keys: &keys)
        case .libSRTP2: _ = try LibSRTP(keys: &keys)
        }
        #expect(places() == before, "a copy was overwritten")
        #expect(keys.local.allSatisfy { $0 == 0 } && keys.remote.allSatisfy { $0 == 0 })
    }

    @Test("keys of the wrong length are refused")
    func keyLength() {
        #expect(throws: (any Error).self) {
            var keys = SRTPKeys(profile: .aeadAES128GCM, local: [1, 2, 3], remote: [4, 5, 6])
            _ = try LibSRTP(keys: &keys)
        }
        #expect(throws: (any Error).self) {
            var keys = SRTPKeys(profile: .aeadAES128GCM, local: [1, 2, 3], remote: [4, 5, 6])
            _ = try OpenSSLSRTP(keys: &keys)
        }
    }
}
