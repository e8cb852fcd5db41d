import Testing
import TestSupport

@testable import RTP

/// A packet of a synthetic VP8 stream, one packet per frame.
func vp8(
    _ number: Int, epoch: Int = 0, timestamp: UInt32, keyframe: Bool = false, pictureID: UInt16 = 0,
    isNewest: Bool = true
) throws -> Splice.Packet {
    let payload: [UInt8] = [0x90, 0x80, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff), keyframe ? 0 : 1, 0, 0]
    var buffer = PacketBuffer()
    let fits = buffer.assignRTP(
        payloadType: 96, sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(timestamp), ssrc: SSRC(1),
        payload: payload)
    check(fits)
    let header = try value(RTPHeader(parsing: buffer))
    return Splice.Packet(
        position: StreamPosition(epoch: epoch, number: number), timestamp: header.timestamp, isNewest: isNewest,
        payload: try value(PayloadDescriptor(parsing: buffer, header: header, as: .vp8)))
}

private func time(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

@Suite struct SpliceTests {
    private func splice(first: UInt16 = 100, clock: SenderClock? = nil) -> Splice {
        var splice = Splice(firstSequenceNumber: SequenceNumber(first))
        splice.begin(clockRate: 90000, clock: clock)
        return splice
    }

    private func pictureID(_ numbers: Splice.Numbers?) -> UInt16? {
        guard case .picture(let rewrite)? = numbers?.patch else { return nil }
        return rewrite.pictureID
    }

    @Test("Nothing is sent before a keyframe; the first stream keeps its timestamps and gets new numbers")
    func firstStream() throws {
        var splice = splice()
        #expect(splice.take(try vp8(65530, timestamp: 9000), now: time(0)) == nil)
        let first = splice.take(try vp8(65531, timestamp: 12000, keyframe: true), now: time(33))
        #expect(first?.sequenceNumber == SequenceNumber(100))
        #expect(first?.timestamp == RTPTimestamp(12000))
        #expect(first?.patch == nil)
    }

    @Test("A keyframe goes on with the picture ids, wherever the publisher's begin, after frames were left out")
    func keyframeAfterLeftOutFrames() throws {
        var splice = splice()
        _ = splice.take(try vp8(0, timestamp: 0, keyframe: true, pictureID: 30_000), now: time(0))
        let omitted = try vp8(1, timestamp: 3000, pictureID: 30_001)
        #expect(splice.leaveOutPicture(omitted) == nil)
        let next = splice.take(try vp8(2, timestamp: 6000, pictureID: 30_002), now: time(66))
        #expect(pictureID(next) == 30_001)
        #expect(next?.sequenceNumber == SequenceNumber(101))
        #expect(splice.hasLeftOut(omitted))
        // Far back, as a restarted payloader's may be.
        #expect(!splice.hasLeftOut(try vp8(3, timestamp: 9000, pictureID: 20_000)))
        let keyframe = splice.take(try vp8(3, timestamp: 9000, keyframe: true, pictureID: 20_000), now: time(99))
        #expect(pictureID(keyframe) == 30_002)
        #expect(pictureID(splice.take(try vp8(4, timestamp: 12_000, pictureID: 20_001), now: time(132))) == 30_003)
    }

    @Test("A late packet of a frame that was left out fills its number, also if it does not look like one")
    func latePacketOfLeftOutFrame() throws {
        var splice = splice()
        _ = splice.take(try vp8(0, timestamp: 0, keyframe: true, pictureID: 10), now: time(0))
        #expect(splice.leaveOutPicture(try vp8(1, timestamp: 3000, pictureID: 11)) == nil)
        let next = splice.take(try vp8(3, timestamp: 6000, pictureID: 12), now: time(66))
        #expect(next?.sequenceNumber == SequenceNumber(102) && next?.isEmpty == false)
        let late = splice.take(try vp8(2, timestamp: 3000, pictureID: 11, isNewest: false), now: time(70))
        #expect(late?.sequenceNumber == SequenceNumber(101) && late?.isEmpty == true)
    }

    @Test("Numbers of empty packets are not used again where another stream or a long gap follows")
    func numbersBehindEmptyPackets() throws {
        for isGap in [false, true] {
            var splice = splice()
            _ = splice.take(try vp8(0, timestamp: 0, keyframe: true), now: time(0))
            #expect(splice.leaveOut(StreamPosition(epoch: 0, number: 4), timestamp: RTPTimestamp(0)) == nil)
            let empty = (1...3).map {
                splice.leaveOut(StreamPosition(epoch: 0, number: $0), timestamp: RTPTimestamp(0))?.sequenceNumber
            }
            #expect(empty.map { $0?.rawValue } == [101, 102, 103])
            if !isGap { splice.begin(clockRate: 90000, clock: nil) }
            let next = splice.take(try vp8(isGap ? 30_000 : 5, timestamp: 3000, keyframe: true), now: time(33))
            #expect(next?.sequenceNumber == SequenceNumber(isGap ? 105 : 104))
        }
    }

    @Test("Packets that overtake each other close no gap, however many do")
    func overtaking() throws {
        var splice = splice()
        _ = splice.take(try vp8(0, timestamp: 0, keyframe: true), now: time(0))
        for first in stride(from: 1, to: 10_000, by: 10) {
            for number in (first..<first + 10).reversed() {
                let numbers = splice.take(
                    try vp8(number, timestamp: 3000, isNewest: number == first + 9), now: time(1))
                #expect(numbers?.sequenceNumber == SequenceNumber(UInt16(100 + number)))
            }
        }
    }

    @Test("Late packets of frames before a keyframe leave the picture ids behind it as they are")
    func latePacketsAfterKeyframe() throws {
        var splice = splice()
        _ = splice.take(try vp8(0, timestamp: 0, keyframe: true, pictureID: 10), now: time(0))
        #expect(splice.leaveOutPicture(try vp8(1, timestamp: 3000, pictureID: 11)) == nil)
        #expect(pictureID(splice.take(try vp8(3, timestamp: 6000, pictureID: 12), now: time(66))) == 11)
        #expect(pictureID(splice.take(try vp8(5, timestamp: 9000, keyframe: true, pictureID: 13), now: time(99))) == 12)
        // Packets that were overtaken: of the frame that was left out, and of the one behind it.
        let omitted = try vp8(2, timestamp: 3000, pictureID: 11, isNewest: false)
        #expect(splice.hasLeftOut(omitted))
        #expect(splice.leaveOutPicture(omitted)?.sequenceNumber == SequenceNumber(101))
        let late = splice.take(try vp8(4, timestamp: 6000, pictureID: 12, isNewest: false), now: time(100))
        #expect(pictureID(late) == 11)
        let rest = splice.take(try vp8(6, timestamp: 9000, pictureID: 13), now: time(101))
        #expect(pictureID(rest) == 12)
        #expect(pictureID(splice.take(try vp8(7, timestamp: 12_000, pictureID: 14), now: time(132))) == 13)
    }

    @Test("Frames go on with the picture ids after a jump back, too")
    func jumpAfterLeftOutFrames() throws {
        var splice = splice()
        _ = splice.take(try vp8(0, timestamp: 0, keyframe: true, pictureID: 30_000), now: time(0))
        #expect(splice.leaveOutPicture(try vp8(1, timestamp: 3000, pictureID: 30_001)) == nil)
        #expect(pictureID(splice.take(try vp8(2, timestamp: 6000, pictureID: 20_000), now: time(66))) == 30_001)
        #expect(pictureID(splice.take(try vp8(3, timestamp: 9000, pictureID: 20_001), now: time(99))) == 30_002)
    }

    @Test("A receiver's first number is far below the wrap")
    func randomStart() {
        var random = Seeded(4)
        for _ in 0..<1000 { #expect(Splice.randomStart(using: &random).rawValue < 0x4000) }
    }

    @Test("A second stream continues numbers, timestamps and picture ids of the first across their wraps")
    func secondStream() throws {
        var splice = splice(first: 65535)
        _ = splice.take(try vp8(70_000, timestamp: .max - 100, keyframe: true, pictureID: 0x7fff), now: time(0))
        splice.end()
        #expect(splice.take(try vp8(70_001, timestamp: 5), now: time(1)) == nil)
        #expect(splice.nextSequenceNumber == SequenceNumber(0))
        splice.begin(clockRate: 90000, clock: nil)
        let keyframe = try vp8(7, timestamp: 500, keyframe: true, pictureID: 3)
        let joined = try value(splice.take(keyframe, now: time(1000)))
        #expect(joined.sequenceNumber == SequenceNumber(0))
        #expect(joined.timestamp == RTPTimestamp(.max - 100).advanced(by: 90_000))
        #expect(pictureID(joined) == 0)
        let next = try value(splice.take(try vp8(8, timestamp: 3500, pictureID: 4), now: time(1033)))
        #expect(next.sequenceNumber == SequenceNumber(1))
        #expect(next.timestamp.distance(from: joined.timestamp) == 3000)
        #expect(pictureID(next) == 1)
    }

    @Test("A late packet keeps its place; packets from before the start are omitted, also a repaired start")
    func latePackets() throws {
        var splice = splice()
        #expect(splice.take(try vp8(5, timestamp: 0, keyframe: true, isNewest: false), now: time(0)) == nil)
        #expect(splice.isAwaitingStart)
        _ = splice.take(try vp8(10, timestamp: 0, keyframe: true), now: time(0))
        _ = splice.take(try vp8(12, timestamp: 6000), now: time(66))
        let late = splice.take(try vp8(11, timestamp: 3000, isNewest: false), now: time(70))
        #expect(late?.sequenceNumber == SequenceNumber(101))
        #expect(splice.take(try vp8(9, timestamp: 0, isNewest: false), now: time(71)) == nil)
    }

    @Test("A restarted stream continues at its next keyframe, whatever its numbers")
    func newEpoch() throws {
        for step in [1, 1000, 5000, 30000, 40000, -1, -1000, -5000, -30000, -40000] {
            var splice = splice()
            var number = 100_000
            for index in 0..<100 {
                let packet = try vp8(number, timestamp: UInt32(index) * 3000, keyframe: index == 0)
                #expect(splice.take(packet, now: time(Int64(index) * 33)) != nil)
                number += 1
            }
            number += step
            #expect(splice.take(try vp8(number, epoch: 1, timestamp: 77), now: time(3300)) == nil)
            #expect(splice.isAwaitingStart)
            let packet = try vp8(number + 1, epoch: 1, timestamp: 3077, keyframe: true)
            let joined = try value(splice.take(packet, now: time(3333)))
            #expect(joined.sequenceNumber == SequenceNumber(200))
            #expect(joined.timestamp == RTPTimestamp(99 * 3000 + 66 * 90))
        }
    }

    @Test("Omitted packets leave no gap; one that is omitted too late is sent empty")
    func leavingOut() throws {
        var splice = splice()
        func send(_ number: Int) throws -> UInt16? {
            splice.take(try vp8(number, timestamp: 0, keyframe: number == 10), now: time(0))?.sequenceNumber.rawValue
        }
        func leaveOut(_ number: Int) -> UInt16? {
            splice.leaveOut(StreamPosition(epoch: 0, number: number), timestamp: RTPTimestamp(9))?.sequenceNumber
                .rawValue
        }
        #expect(leaveOut(9) == nil)
        #expect(try send(10) == 100)
        #expect(leaveOut(11) == nil)
        #expect(try send(12) == 101)
        #expect(try send(16) == 105)
        #expect(leaveOut(14) == 103)
        #expect(try send(13) == 102)
        #expect(leaveOut(17) == nil)
        #expect(leaveOut(18) == nil)
        #expect(try send(15) == 104)
        #expect(try send(19) == 106)
        #expect(splice.nextSequenceNumber == SequenceNumber(107))
    }

    @Test("A stream skips 500 numbers, and one more for each packet; a longer gap is closed except for one number")
    func longGaps() throws {
        var splice = splice()
        func send(_ number: Int) throws -> UInt16? {
            splice.take(try vp8(number, timestamp: 0, keyframe: number == 10), now: time(0))?.sequenceNumber.rawValue
        }
        #expect(try send(10) == 100)
        #expect(try send(11 + Splice.maximumSkips) == UInt16(101 + Splice.maximumSkips))
        // One packet has arrived since, so one number may be skipped.
        #expect(try send(13 + Splice.maximumSkips) == UInt16(103 + Splice.maximumSkips))
        #expect(try send(5000) == UInt16(105 + Splice.maximumSkips))
        #expect(try send(4999) == nil)
        #expect(try send(5001) == UInt16(106 + Splice.maximumSkips))
    }

    @Test("A switch is aligned by the publishers' clocks, not by the arrival of the first packet")
    func alignment() throws {
        func clock(_ seconds: UInt64, _ rtp: UInt32) -> SenderClock {
            let wall = NTPTime(unixNanoseconds: (1_700_000_000 + seconds) * 1_000_000_000)
            return SenderClock(ntp: wall, rtp: RTPTimestamp(rtp), at: time(0), clockRate: 90000)
        }
        // Captured 100 ms apart; the second packet is 150 ms late.
        func ticks(_ second: SenderClock?) throws -> Int {
            var splice = splice(clock: clock(0, 1000))
            let before = try value(splice.take(try vp8(1, timestamp: 1000, keyframe: true), now: time(0)))
            splice.end()
            splice.begin(clockRate: 90000, clock: second)
            let packet = try vp8(1, timestamp: 500_000, keyframe: true)
            let after = try value(splice.take(packet, now: time(250)))
            return after.timestamp.distance(from: before.timestamp)
        }
        #expect(try ticks(clock(0, 491_000)) == 9000)
        #expect(try ticks(nil) == 22_500)
        #expect(try ticks(clock(3600, 491_000)) == 22_500, "the clocks of the two publishers differ")
    }

    @Test("A clock counts for its epoch only, also if the stream restarts before its first packet")
    func clockOfAnEarlierEpoch() throws {
        let clock = SenderClock(
            ntp: NTPTime(rawValue: 1 << 32), rtp: RTPTimestamp(0), at: time(0), clockRate: 90000)
        for (epoch, expected) in [(4, clock), (5, nil)] {
            var splice = Splice(firstSequenceNumber: SequenceNumber(100))
            splice.begin(clockRate: 90000, clock: clock, epoch: 4)
            _ = splice.take(try vp8(1, epoch: epoch, timestamp: 5, keyframe: true), now: time(0))
            #expect(splice.clock == expected)
        }
    }

    @Test("A clock that comes between the restart of a stream and its first packet counts for that packet")
    func clockOfTheNextEpoch() throws {
        let clock = SenderClock(
            ntp: NTPTime(rawValue: 1 << 32), rtp: RTPTimestamp(0), at: time(0), clockRate: 90000)
        var splice = Splice(firstSequenceNumber: SequenceNumber(100))
        splice.begin(clockRate: 90000, clock: nil, epoch: 4)
        splice.sourceRestarted()
        splice.setClock(clock)
        _ = splice.take(try vp8(1, epoch: 5, timestamp: 5, keyframe: true), now: time(0))
        #expect(splice.clock == clock)
    }

    @Test("A stream that was paused before it had a clock goes on by the clock that came meanwhile")
    func clockOfAPausedStream() throws {
        let clock = SenderClock(
            ntp: NTPTime(unixNanoseconds: 1_700_000_000_000_000_000), rtp: RTPTimestamp(1000), at: time(0),
            clockRate: 90000)
        for (epoch, expected) in [(4, 9000), (3, 22_500)] {
            var splice = Splice(firstSequenceNumber: SequenceNumber(100))
            splice.begin(clockRate: 90000, clock: nil, epoch: 4)
            let before = try value(
                splice.take(try vp8(1, epoch: 4, timestamp: 1000, keyframe: true), now: time(0)))
            splice.pause()
            splice.setClock(clock, ofPaused: epoch)
            splice.begin(clockRate: 90000, clock: clock, epoch: 4)
            // Captured 100 ms after the other, and 150 ms late.
            let after = try value(
                splice.take(try vp8(2, epoch: 4, timestamp: 10_000, keyframe: true), now: time(250)))
            #expect(after.timestamp.distance(from: before.timestamp) == expected, "epoch \(epoch)")
        }
    }

    @Test("A stream's clock ends with the stream")
    func clockOfTheStreamBefore() throws {
        var splice = splice()
        let clock = SenderClock(
            ntp: NTPTime(rawValue: 1 << 32), rtp: RTPTimestamp(0), at: time(0), clockRate: 90000)
        splice.setClock(clock)
        #expect(splice.clock == nil)
        _ = splice.take(try vp8(1, timestamp: 5, keyframe: true), now: time(0))
        #expect(splice.clock == clock)
        _ = splice.take(try vp8(9000, epoch: 1, timestamp: 90_000, keyframe: true), now: time(10))
        #expect(splice.clock == nil)
        splice.setClock(clock)
        #expect(splice.clock?.rtp == RTPTimestamp(905).advanced(by: -90_000))
    }
}
