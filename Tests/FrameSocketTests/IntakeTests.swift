import Testing

@testable import FrameSocket

/// Accepted messages, and the codes for refused ones.
@Suite struct IntakeTests {
    private func hello(
        _ format: FrameFormat = small, slots: UInt32 = 4, slotBytes: UInt32 = 4608, memory: [Int?] = [18_432]
    ) -> String? {
        refusal {
            var intake = FrameIntake(wanted: small, now: second)
            let hello = FeedHello(format: format, slots: slots, slotBytes: slotBytes, name: "test")
            _ = try intake.receive(FrameMessage.hello(hello).bytes, memory: memory, now: second)
        }
    }

    @Test func `a feeder with the requested format and memory is accepted`() {
        #expect(hello() == nil)
    }

    @Test func `another size or encoding is refused with both formats`() {
        #expect(hello(FrameFormat(.i420, width: 64, height: 64)) == "feed.format")
        #expect(hello(FrameFormat(.nv12, width: 64, height: 48)) == "feed.format")
        var intake = FrameIntake(wanted: small, now: second)
        let other = FeedHello(
            format: FrameFormat(.bgrx, width: 1280, height: 720), slots: 1, slotBytes: 1 << 22, name: "screen")
        do throws(FrameSocketError) {
            _ = try intake.receive(FrameMessage.hello(other).bytes, memory: [1 << 22], now: second)
            Issue.record("it was accepted")
        } catch {
            #expect(error.message.contains("\"screen\" sends BGRx 1280x720 instead of I420 64x48"))
        }
    }

    @Test func `missing, unsealed, too small and too large memory is refused`() {
        #expect(hello(memory: []) == "feed.memory")
        #expect(hello(memory: [nil]) == "feed.memory")
        #expect(hello(memory: [18_432, 18_432]) == "feed.memory")
        #expect(hello(memory: [18_431]) == "feed.memory")
        #expect(hello(slots: 0) == "feed.memory")
        #expect(hello(slots: 65, memory: [1 << 30]) == "feed.memory")
        #expect(hello(slotBytes: 4607) == "feed.memory")
        #expect(hello(slots: 64, slotBytes: .max, memory: [.max]) == "feed.memory")
    }

    private func frame(_ notice: FrameNotice) -> String? {
        refusal {
            var intake = try greeted(slotBytes: 8192)
            _ = try intake.receive(FrameMessage.frame(notice).bytes, now: second)
        }
    }

    @Test func `a frame outside of its slot, or with planes outside of it, is refused`() {
        #expect(frame(FrameNotice(slot: 3, captureTime: 0, length: 4608)) == nil)
        #expect(frame(FrameNotice(slot: 3, captureTime: 0, offset: 3584, length: 4608)) == nil)
        #expect(frame(FrameNotice(slot: 4, captureTime: 0, length: 4608)) == "feed.bad-frame")
        #expect(frame(FrameNotice(slot: 0, captureTime: 0, offset: 3585, length: 4608)) == "feed.bad-frame")
        #expect(frame(FrameNotice(slot: 0, captureTime: 0, offset: .max, length: .max)) == "feed.bad-frame")
        #expect(frame(FrameNotice(slot: 0, captureTime: 0, length: 4607)) == "feed.bad-frame")
        #expect(frame(FrameNotice(slot: 0, captureTime: 0, length: 0)) == "feed.bad-frame")
        func strides(_ luma: UInt32, _ chroma: UInt32, _ last: UInt32 = 32, at offset: UInt32 = 7000) -> String? {
            frame(
                FrameNotice(
                    slot: 0, captureTime: 0, length: 8192,
                    planes: [
                        PlanePlace(offset: 0, stride: luma), PlanePlace(offset: 5000, stride: chroma),
                        PlanePlace(offset: offset, stride: last),
                    ]))
        }
        #expect(strides(80, 40) == nil)
        #expect(strides(63, 40) == "feed.bad-frame")
        #expect(strides(80, .max) == "feed.bad-frame")
        #expect(strides(80, 40, 64) == "feed.bad-frame", "the last row ends after the frame")
        #expect(strides(80, 40, at: .max) == "feed.bad-frame")
        #expect(
            frame(FrameNotice(slot: 0, captureTime: 0, length: 8192, planes: [PlanePlace(offset: 0, stride: 64)]))
                == "feed.bad-frame")
    }

    @Test func `a slot cannot be used again before its release`() throws {
        var intake = try greeted()
        let notice = FrameMessage.frame(FrameNotice(slot: 2, captureTime: 0, length: 4608)).bytes
        _ = try intake.receive(notice, now: second)
        #expect(intake.counts.held == 1)
        #expect(refusal { _ = try intake.receive(notice, now: second) } == "feed.no-credit")
        let isNews = intake.release(pool: 1, slot: 2)
        #expect(isNews)
        _ = try intake.receive(notice, now: second + 1)
        #expect(intake.counts.received == 3)
    }

    @Test func `new memory has free slots, and releases of the old ones are ignored`() throws {
        var intake = try greeted()
        let notice = FrameMessage.frame(FrameNotice(slot: 2, captureTime: 0, length: 4608)).bytes
        _ = try intake.receive(notice, now: second)
        let again = FeedHello(format: small, slots: 3, slotBytes: 4608, name: "test")
        let event = try intake.receive(FrameMessage.hello(again).bytes, memory: [1 << 20], now: second)
        #expect(event == .memory(pool: 2, bytes: 3 * 4608, name: "test", isFirst: false))
        _ = try intake.receive(notice, now: second + 1)
        let old = intake.release(pool: 1, slot: 2)
        #expect(!old)
        #expect(intake.counts.held == 1)
    }

    @Test func `messages out of order, with descriptors or truncated are refused`() throws {
        var fresh = FrameIntake(wanted: small, now: second)
        let notice = FrameMessage.frame(FrameNotice(slot: 0, captureTime: 0, length: 4608)).bytes
        #expect(refusal { _ = try fresh.receive(notice, now: second) } == "feed.malformed")
        var intake = try greeted()
        #expect(refusal { _ = try intake.receive(notice, memory: [nil], now: second) } == "feed.descriptors")
        #expect(refusal { _ = try intake.receive(notice, isCut: true, now: second) } == "feed.malformed")
        #expect(refusal { _ = try intake.receive(FrameMessage.start.bytes, now: second) } == "feed.malformed")
    }

    @Test func `impossible times are replaced by arrival times, reported once`() throws {
        var intake = try greeted(slots: 64)
        func time(_ stated: UInt64, at now: UInt64, slot: UInt32) throws -> (UInt64, String?) {
            let notice = FrameNotice(slot: slot, captureTime: stated, length: 4608)
            guard case .frame(let picture) = try intake.receive(FrameMessage.frame(notice).bytes, now: now) else {
                throw FrameSocketError.malformed("no frame")
            }
            return (picture.captureTime, picture.remark?.code)
        }
        #expect(try time(2 * second, at: 2 * second, slot: 0) == (2 * second, nil))
        #expect(try time(0, at: 3 * second, slot: 1) == (3 * second, nil), "0 means no time")
        #expect(try time(3 * second, at: 4 * second, slot: 2) == (4 * second, "feed.bad-time"), "not later")
        #expect(try time(9 * second, at: 5 * second, slot: 3) == (5 * second, nil), "in the future, said before")
        #expect(try time(.max, at: 5 * second, slot: 4) == (5 * second + 1, nil))
        #expect(try time(6 * second, at: 6 * second, slot: 5) == (6 * second, nil), "a right one is taken again")
    }

    @Test func `a frame from before the feeder's connection has an invalid time`() throws {
        var times = CaptureTimes(connectedAt: 10 * second)
        let (time, remark) = times.check(8 * second, now: 11 * second)
        #expect(time == 11 * second && remark?.code == "feed.bad-time")
    }
}
