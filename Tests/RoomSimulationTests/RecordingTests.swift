import PeerLoop
import RTP
import RoomProtocol
import ServerCore
import TestSupport
import Testing

@testable import RoomSimulation

/// The packets that a server records of a publisher whose link loses and reorders some.
struct RecordingTests {
    /// Keeps the packets of one stream.
    private final class Tape: RecordingSink {
        let stream: RecordedStream
        private(set) var payloads: [[UInt8]] = []
        private(set) var numbers: [UInt16] = []
        private(set) var times: [TimeInterval] = []
        private(set) var end: RecordingEnd?

        init(_ stream: RecordedStream) { self.stream = stream }

        func write(_ packets: RecordedPackets) -> Bool {
            var start = 0
            for packet in packets.packets {
                let bytes = packets.bytes[start..<(start + packet.length)]
                start += packet.length
                numbers.append(UInt16(bytes[bytes.startIndex + 2]) << 8 | UInt16(bytes[bytes.startIndex + 3]))
                payloads.append(Array(bytes.dropFirst(RTPHeader.minimumLength)))
                times.append(packet.time)
            }
            return true
        }

        func end(_ end: RecordingEnd) { self.end = end }

        /// The frame and the place in it of each packet of a video.
        var parts: [FramePart] { payloads.compactMap { FramePart(payload: $0.span) } }
        /// The numbers of the packets of audio, as their source counts them.
        var sounds: [UInt32] { payloads.compactMap { AudioSource.contents(of: $0.span)?.number } }
    }

    private let video = VideoFormat(packetsPerFrame: 3, packetsPerKeyframe: 12, payload: 500)

    /// Records a publisher on a link that loses packets from the second second on.
    private func record(_ link: Link, seconds: Int64, seed: UInt64) throws -> (video: Tape, audio: Tape) {
        let simulation = Simulation(seed: seed)
        defer { simulation.end() }
        var tapes: [Tape] = []
        simulation.world.recorder = { stream in
            let tape = Tape(stream)
            tapes.append(tape)
            return tape
        }
        let ada = simulation.client("ada", link: Link(delay: link.up.delay))
        simulation.task("studio") {
            try await ada.join("studio")
            let streams = [
                try await ada.publish(video, isRecorded: true), try await ada.publishAudio(isRecorded: true),
            ]
            try await simulation.sleep(for: .seconds(1))
            ada.setLink(link)
            try await simulation.sleep(for: .seconds(seconds))
            // The last repairs.
            ada.setLink(Link(delay: link.up.delay))
            try await simulation.sleep(for: .seconds(2))
            for stream in streams { try await ada.unpublish(stream) }
        }
        try simulation.run(for: .seconds(seconds + 6))
        return (
            try #require(tapes.first { $0.stream.codec == .vp8 }),
            try #require(tapes.first { $0.stream.codec == .opus })
        )
    }

    @Test func `lost packets that are repeated are in the recording, and all packets are in order`() throws {
        for seed in 1...UInt64(Soak.rounds(2, soak: 10)) {
            // So many requests fit into the 400 ms that none fails each time.
            let link = Link(delay: .milliseconds(5), jitter: .milliseconds(20), loss: 0.05)
            let tape = try record(link, seconds: 30, seed: seed).video
            let end = try #require(tape.end)
            #expect(end.missing == 0 && end.dropped == 0, "seed \(seed)")
            #expect(zip(tape.numbers, tape.numbers.dropFirst()).allSatisfy { $0 &+ 1 == $1 })
            // Each frame is whole, and follows the one before.
            var next = (frame: tape.parts.first?.frame ?? 0, index: UInt8(0))
            for part in tape.parts {
                #expect((part.frame, part.index) == next, "seed \(seed)")
                next = part.index + 1 == part.count ? (part.frame + 1, 0) : (part.frame, part.index + 1)
            }
            #expect(next.index == 0 && tape.parts.count == tape.payloads.count && tape.parts.count > 30 * 25 * 3)
            let steps = Set(zip(tape.times, tape.times.dropFirst()).map { $1 - $0 })
            #expect(steps == [.zero, .milliseconds(40)], "\(steps)")
        }
    }
}
