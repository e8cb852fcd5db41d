import Testing
import TestSupport

@testable import FrameSocket

/// The protocol without a socket.
@Suite struct ProtocolTests {
    private static let messages: [FrameMessage] = [
        .greeting(FrameFormat(.nv12, width: 1920, height: 1080, rateNumerator: 30000, rateDenominator: 1001)),
        .start, .release(pool: 3, slot: 7), .keyframeWanted, .pause, .resume, .stop(.meetingFinished),
        .statusAnswer(
            {
                var counts = FeedCounts()
                (counts.received, counts.taken, counts.held, counts.isPaused) = (1 << 40, 5, 2, true)
                return counts
            }()),
        .failure(.malformed("so")),
        .hello(FeedHello(format: small, slots: 4, slotBytes: 4608, name: "Bildschirm größer")),
        .frame(FrameNotice(slot: 1, captureTime: 1 << 50, isKeyframe: false, offset: 64, length: 99)),
        .frame(
            FrameNotice(
                slot: 1, captureTime: 7, length: 9,
                planes: [PlanePlace(offset: 0, stride: 64), PlanePlace(offset: 8, stride: 32)])),
        .paused, .resumed, .statusQuestion, .bye("done"),
    ]

    @Test func `every message survives writing and reading`() throws {
        for message in Self.messages {
            #expect(message.bytes.count <= FrameMessage.limit)
            #expect(try FrameMessage(message.bytes) == message)
        }
    }

    @Test func `additions of a later version are ignored`() throws {
        #expect(
            try FrameMessage(FrameMessage.release(pool: 1, slot: 2).bytes + [1, 2, 3]) == .release(pool: 1, slot: 2))
    }

    @Test func `truncated, unknown and foreign messages are refused with a code`() {
        for message in Self.messages {
            for count in 0..<min(message.bytes.count, 4) {
                #expect(refusal { _ = try FrameMessage(message.bytes.prefix(count)) } == "feed.malformed")
            }
        }
        #expect(refusal { _ = try FrameMessage([0xff, 0xff, 0, 0]) } == "feed.malformed")
        #expect(
            refusal { _ = try FrameMessage(FrameMessage.release(pool: 1, slot: 1).bytes.dropLast()) }
                == "feed.malformed")
        var hello = FrameMessage.hello(FeedHello(format: small, slots: 4, slotBytes: 4608, name: "")).bytes
        hello[8] = 2
        #expect(refusal { _ = try FrameMessage(hello) } == "feed.version")
        hello[4] = 0
        #expect(refusal { _ = try FrameMessage(hello) } == "feed.version")
    }

    @Test func `texts are cut to the message's length and cannot control a terminal`() throws {
        let name = String(repeating: "ä", count: 1000)
        let long = FrameMessage.bye("\u{1b}[31mred\u{202e}\n" + name)
        #expect(long.bytes.count <= FrameMessage.limit)
        guard case .bye(let text) = try FrameMessage(long.bytes) else { return #expect(Bool(false)) }
        #expect(text.hasPrefix("[31mredäää"))
    }

    @Test(arguments: 0..<8) func `random messages never trap, and memory stays bounded`(seed: UInt64) throws {
        var random = Seeded(seed + 1)
        var intake = try greeted()
        var accepted = 0
        for round in 0..<20_000 {
            var bytes = Self.messages[Int.random(in: 0..<Self.messages.count, using: &random)].bytes
            for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.removeLast(Int.random(in: 0...min(bytes.count, 8), using: &random))
                default: bytes += (0..<8).map { _ in UInt8.random(in: 0...255, using: &random) }
                }
            }
            let memory: [Int?] = [[], [], [nil], [1 << 20], [1 << 20, 4]][Int.random(in: 0..<5, using: &random)]
            do throws(FrameSocketError) {
                let event = try intake.receive(bytes, memory: memory, now: second + UInt64(round) * 1_000_000)
                accepted += 1
                if case .frame(let picture) = event {
                    #expect(picture.range.lowerBound >= 0 && picture.range.upperBound <= 1 << 30)
                    _ = intake.release(pool: picture.pool, slot: picture.slot)
                }
            } catch {
                #expect(error.code.hasPrefix("feed.") && error.message.hasSuffix("."))
            }
            #expect(intake.counts.held <= FrameIntake.mostSlots)
        }
        #expect(accepted > 100, "the fuzz reaches what is behind the first checks")
    }
}
