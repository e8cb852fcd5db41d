import Dispatch
import RTP
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// A participant that watches the first stream of a medium in a room: its packets and its states.
final class StreamWitness: IncomingSink, Sendable {
    struct Seen {
        var isConnected = false
        var streams: [Int] = []
        var states: [StreamState] = []
        var ended = 0
        var ssrcs: Set<SSRC> = []
        var packets = 0
        /// Of the packets, in the order of arrival.
        var numbers: [UInt16] = []
        /// Of the frames, in the order of arrival.
        var timestamps: [UInt32] = []
        /// The picture ids of frames of VP8, in the order of arrival.
        var pictures: [UInt16] = []
        /// The sizes of keyframes of VP8, each time that the size changes.
        var sizes: [[Int]] = []
        /// Of the packets that carry one, with the times of their arrival.
        var captureTimes: [(time: NTPTime, arrival: NTPTime)] = []
    }

    private let media: StreamMedia
    private let state = Mutex(Seen())

    init(of media: StreamMedia = .video) { self.media = media }

    var seen: Seen { state.withLock { $0 } }

    func take(_ event: RoomEvent) {
        state.withLock { seen in
            switch event {
            case .connected: seen.isConnected = true
            case .streamPublished(_, let info) where info.media == media: seen.streams.append(info.id)
            case .streamChanged(_, let info, _) where info.media == media: seen.states.append(info.state)
            case .streamUnpublished(_, let info) where info.media == media: seen.ended += 1
            case .participantLeft: seen.ended += 1
            default: break
            }
        }
    }

    func begin(_ stream: IncomingStream) {}
    func end() {}

    func receive(_ packet: Span<UInt8>) {
        func field(_ bytes: Range<Int>) -> UInt32 { bytes.reduce(UInt32(0)) { $0 << 8 | UInt32(packet[$1]) } }
        let (number, timestamp, ssrc) = (UInt16(field(2..<4)), field(4..<8), SSRC(field(8..<12)))
        var copy = PacketBuffer()
        copy.append(packet)
        guard let header = RTPHeader(parsing: copy) else { return }
        let (captured, payload) = (captureTime(of: copy, header), header.payloadOffset)
        let size = Self.size(packet, from: payload)
        state.withLock { seen in
            if let size, seen.sizes.last != size { seen.sizes.append(size) }
            if let captured { seen.captureTimes.append((captured, Self.now)) }
            seen.ssrcs.insert(ssrc)
            seen.packets += 1
            seen.numbers.append(number)
            if seen.timestamps.last != timestamp {
                seen.timestamps.append(timestamp)
                // X, I and M of RFC 7741, section 4.2.
                if packet.count > payload + 3, packet[payload] & 0x80 != 0, packet[payload + 1] & 0x80 != 0,
                    packet[payload + 2] & 0x80 != 0
                {
                    seen.pictures.append(UInt16(field(payload + 2..<payload + 4)) & 0x7fff)
                }
            }
        }
    }

    /// Behind the start code of a keyframe (RFC 6386, section 9.1).
    private static func size(_ packet: Span<UInt8>, from payload: Int) -> [Int]? {
        for place in payload..<max(payload, min(payload + 16, packet.count - 6))
        where packet[place] == 0x9d && packet[place + 1] == 0x01 && packet[place + 2] == 0x2a {
            return [3, 5].map { Int(packet[place + $0]) | Int(packet[place + $0 + 1] & 0x3f) << 8 }
        }
        return nil
    }

    private func captureTime(of packet: borrowing PacketBuffer, _ header: RTPHeader) -> NTPTime? {
        var header = header
        // The id of our offers.
        header.resolveExtensions(HeaderExtensionIDs(captureTime: 1), in: packet)
        return header.captureTime?.timestamp
    }

    private static var now: NTPTime {
        WallClock.shared.time(at: MonotonicTime(nanoseconds: DispatchTime.now().uptimeNanoseconds))
    }

    func enter(_ stage: RoomStage, _ room: String = "room") async throws -> RoomEngine {
        let engine = RoomEngine { [weak self] in self?.take($0) }
        engine.connect(to: try RoomName(room), with: try await stage.token())
        try await requireEventually("the witness is connected") { self.seen.isConnected }
        return engine
    }

    /// Subscribes to the first stream.
    func watch(_ engine: RoomEngine, view: StreamView = StreamView()) async throws {
        try await requireEventually("a stream") { !self.seen.streams.isEmpty }
        let id = seen.streams[0]
        let result = await withCheckedContinuation { continuation in
            engine.subscribe(id, view: view, to: .packets(self)) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Waits for so many more packets.
    func more(_ count: Int = 20) async throws {
        let before = seen.packets
        try await requireEventually("\(count) more packets") { self.seen.packets >= before + count }
    }
}

extension StreamWitness.Seen {
    /// Whether there was one stream all the time, in one SSRC, without a gap in its packets, and with timestamps that rise by
    /// less than the given seconds.
    func isOneStream(within seconds: Double = 5, clockRate: Double = 90_000) -> Bool {
        let offsets = numbers.map { Int($0 &- (numbers.first ?? 0)) }
        let isComplete = Set(offsets).count == (offsets.max() ?? 0) + 1
        let steps = zip(timestamps, timestamps.dropFirst()).map { $1 &- $0 }
        return streams.count == 1 && ended == 0 && ssrcs.count == 1 && isComplete
            && steps.allSatisfy { Double($0) < seconds * clockRate }
    }
}
