import ClientCore
import Foundation
import MediaGraph
import PeerLoop
import RTP
import RoomClient
import RoomProtocol
import TestFixtures
import Testing

/// The films of all clients that send packets: VP8 frames with codes, each of which occurs once. And the tones of those that speak.
final class FilmShelf: Sendable {
    private let films: [Int: [[UInt8]]]
    private let numbers: [[UInt8]: UInt32]
    private let tones: [Int: [[UInt8]]]

    init(of count: Int, from first: Int, speakers: [Int]) throws {
        var films: [Int: [[UInt8]]] = [:]
        var numbers: [[UInt8]: UInt32] = [:]
        var tones: [Int: [[UInt8]]] = [:]
        for id in first..<first + count {
            let codes = (0..<FrameCode.period).map { FrameCode.number(of: id, at: $0) }
            let frames = try EncodedFilm.vp8(codes, keyframeEvery: FrameCode.ticksPerSecond)
            try #require(frames.count == codes.count)
            films[id] = frames
            for (frame, code) in zip(frames, codes) {
                try #require(numbers.updateValue(code, forKey: frame) == nil, "two frames are encoded alike")
            }
        }
        for id in speakers where films[id] != nil {
            tones[id] = try EncodedFilm.opus(hertz: 100 * id, packets: 50)
            let others = tones.filter { $0.key != id }.values.joined()
            try #require(Set(others).isDisjoint(with: tones[id] ?? []), "two tones are encoded alike")
        }
        (self.films, self.numbers, self.tones) = (films, numbers, tones)
    }

    func frame(of publisher: Int, at tick: Int) -> [UInt8] { films[publisher]?[tick % FrameCode.period] ?? [] }

    func isFilm(_ publisher: Int) -> Bool { films[publisher] != nil }

    /// Nil for a frame of no film.
    func number(of frame: [UInt8]) -> UInt32? { numbers[frame] }

    func tone(of publisher: Int) -> [[UInt8]] { tones[publisher] ?? [] }

    /// A sentence about a packet of audio that is not of this publisher. Nil without one, and if the publisher has no tone.
    func problem(withSound packet: [UInt8], of publisher: Int?) -> String? {
        guard let publisher else { return "a packet is of an audio that was not published" }
        guard let tone = tones[publisher] else { return nil }
        return tone.contains(packet) ? nil : "a packet of audio is not one of \(publisher)"
    }
}

/// Sends a film as packets, in time with the clock.
final class FilmTrack: OutgoingTrack, @unchecked Sendable {
    // Sendable by hand: everything is used on the loop.
    private static let longestPayload = 1100

    let codec = Codec.vp8
    let encoderStatistics: MediaStatistics.VideoEncoder? = nil
    private let id: Int
    private let films: FilmShelf
    private let loop: Loop
    private var pictureID: UInt16 = 0
    private var receiver: TrackReceiver?
    private var last = 0
    private lazy var timer = loop.makeTimer { [unowned self] in send() }

    init(_ id: Int, _ films: FilmShelf, loop: Loop) {
        (self.id, self.films, self.loop) = (id, films, loop)
    }

    func begin() { timer.arm(at: loop.now) }

    func end() { timer.disarm() }

    func connect(_ receiver: TrackReceiver?) { self.receiver = receiver }

    /// The film has one in each second.
    func requestKeyframe() {}

    private func send() {
        timer.arm(at: FrameCode.nextTick)
        let tick = FrameCode.tick
        guard tick != last else { return }
        last = tick
        let frame = films.frame(of: id, at: tick)
        let timestamp = UInt32(truncatingIfNeeded: tick * 90_000 / FrameCode.ticksPerSecond)
        var batch = RTPBatch(
            captureTime: MediaTime(nanoseconds: loop.now.nanoseconds), rtpTimestamp: timestamp,
            // The P bit (RFC 6386, section 9.1).
            isKeyframe: frame.first.map { $0 & 1 == 0 } ?? false)
        for start in stride(from: 0, to: frame.count, by: Self.longestPayload) {
            let end = min(start + Self.longestPayload, frame.count)
            batch.bytes += [0x80, (end == frame.count ? 0x80 : 0) | Codec.vp8.payloadType, 0, 0]
            batch.bytes += stride(from: 24, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: timestamp >> UInt32($0))
            }
            batch.bytes += [0, 0, 0, 1]
            // The payload descriptor: X, S, then I, then a picture id of 15 bits (RFC 7741, section 4.2).
            batch.bytes += [start == 0 ? 0x90 : 0x80, 0x80]
            batch.bytes += [0x80 | UInt8(pictureID >> 8), UInt8(truncatingIfNeeded: pictureID)]
            batch.bytes += frame[start..<end]
            batch.ends.append(batch.bytes.count)
        }
        pictureID = (pictureID + 1) & 0x7fff
        receiver?.take(batch)
    }
}

/// Puts the packets of a video together, and checks whose frames they are.
final class FilmCheck: IncomingSink, @unchecked Sendable {
    // Sendable by hand: everything else is used on the loop.
    private let films: FilmShelf
    private let publisher: Int
    private let report: @Sendable (String?) -> Void
    private var frame: [UInt8]?
    private var scratch = PacketBuffer()

    /// - Parameter report: called for each frame, with what is wrong with it
    init(_ films: FilmShelf, of publisher: Int, report: @escaping @Sendable (String?) -> Void) {
        (self.films, self.publisher, self.report) = (films, publisher, report)
    }

    func begin(_ stream: IncomingStream) { frame = nil }

    func end() { frame = nil }

    func receive(_ packet: Span<UInt8>) {
        scratch.count = 0
        scratch.append(packet)
        guard let header = RTPHeader(parsing: scratch),
            let descriptor = VP8PayloadDescriptor(parsing: scratch, header: header)
        else { return }
        if descriptor.isStartOfPartition, descriptor.partition == 0 { frame = [] }
        let start = header.payloadOffset + descriptor.length
        guard frame != nil, start <= header.payloadEnd else { return }
        frame?.append(contentsOf: (start..<header.payloadEnd).map { scratch.bytes[$0] })
        guard header.marker, let whole = frame else { return }
        frame = nil
        let number = films.number(of: whole)
        guard number != nil || !films.isFilm(publisher) else { return report("a frame is in no film of \(publisher)") }
        report(number.flatMap { FrameCode.problem($0, of: publisher, at: FrameCode.tick) })
    }
}

/// Sends a tone as packets, again and again.
final class SoundTrack: OutgoingTrack, @unchecked Sendable {
    // Sendable by hand: everything is used on the loop.
    let codec = Codec.opus
    let encoderStatistics: MediaStatistics.VideoEncoder? = nil
    private let packets: [[UInt8]]
    private let loop: Loop
    private var count = 0
    private var due = MonotonicTime.zero
    private var receiver: TrackReceiver?
    private lazy var timer = loop.makeTimer { [unowned self] in send() }

    init(_ id: Int, _ films: FilmShelf, loop: Loop) {
        (packets, self.loop) = (films.tone(of: id), loop)
    }

    func begin() {
        due = loop.now
        timer.arm(at: due)
    }

    func connect(_ receiver: TrackReceiver?) {
        self.receiver = receiver
        if receiver == nil { timer.disarm() }
    }

    func requestKeyframe() {}

    private func send() {
        due = max(due + .milliseconds(20), loop.now)
        timer.arm(at: due)
        let timestamp = UInt32(truncatingIfNeeded: count * 960)
        let header: [UInt8] = [0x80, codec.payloadType, 0, 0]
        let time = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: timestamp >> UInt32($0)) }
        let bytes = header + time + [0, 0, 0, 1] + packets[count % packets.count]
        count += 1
        receiver?.take(
            RTPBatch(
                bytes: bytes, ends: [bytes.count], captureTime: MediaTime(nanoseconds: loop.now.nanoseconds),
                rtpTimestamp: timestamp, isKeyframe: true, audioLevel: 20))
    }
}

/// Passes on the packets of an audio.
final class SoundCheck: IncomingSink, @unchecked Sendable {
    // Sendable by hand: everything is used on the loop.
    private let take: @Sendable ([UInt8]) -> Void
    private var scratch = PacketBuffer()

    init(_ take: @escaping @Sendable ([UInt8]) -> Void) { self.take = take }

    func begin(_ stream: IncomingStream) {}

    func end() {}

    func receive(_ packet: Span<UInt8>) {
        scratch.count = 0
        scratch.append(packet)
        guard let header = RTPHeader(parsing: scratch), header.payloadOffset < header.payloadEnd else { return }
        take((header.payloadOffset..<header.payloadEnd).map { scratch.bytes[$0] })
    }
}
