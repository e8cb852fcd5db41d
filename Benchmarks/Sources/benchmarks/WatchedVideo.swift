internal import ClientCore
internal import Foundation
internal import PeerLoop
internal import RTP

/// How a watched video came, for a line of JSON. Times are seconds of CLOCK_MONOTONIC.
struct WatchedReport: Codable, Sendable {
    struct Change: Codable, Sendable {
        var at: Double
        /// Of the frames from then on, in pixels.
        var width: Int
    }

    var stream: Int
    var participant: String
    /// When it was subscribed to.
    var since: Double
    var frames = 0
    var firstFrame: Double?
    var lastFrame: Double?
    var sizes: [Change] = []
    /// The times without a frame of more than a quarter of a second: when they ended, and how long they were.
    var freezes: [[Double]] = []
    /// The longest time between two frames, or from the last one to the end.
    var longestPause = 0.0
    /// Packets given up.
    var missing = 0
    /// Frames that should be of the recording, and are not.
    var harmed = 0
    /// Frames that a decoder could not use behind the one before: neither its successor nor a keyframe. Of decoded frames,
    /// those whose number went back.
    var seams = 0
    /// Of decoded frames, those whose bar code could not be read.
    var unreadable = 0

    static let freeze = 0.25

    init(stream: Int, participant: String, since: Double) {
        (self.stream, self.participant, self.since) = (stream, participant, since)
    }

    mutating func noteFrame(at now: Double, width: Int?) {
        frames += 1
        firstFrame = firstFrame ?? now
        noteFreeze(until: now)
        lastFrame = now
        if let width, width != sizes.last?.width { sizes.append(Change(at: now, width: width)) }
    }

    /// Nobody watches any longer.
    func ended(at now: Double) -> Self {
        var report = self
        report.noteFreeze(until: now)
        return report
    }

    private mutating func noteFreeze(until now: Double) {
        guard let lastFrame else { return }
        longestPause = max(longestPause, now - lastFrame)
        if now - lastFrame > Self.freeze { freezes.append([now, now - lastFrame]) }
    }
}

/// Checks a video by its packets, without a codec: puts frames together and compares them with the recording.
final class PacketCheck: IncomingSink, @unchecked Sendable {
    // Sendable by hand: everything is used on the loop.
    private struct Packet {
        var payload: [UInt8]
        var isStart: Bool
        var isEnd: Bool
        var arrived: MonotonicTime
    }

    /// How long it waits for a repair.
    private static let patience = TimeInterval.milliseconds(400)

    private let loop: Loop
    private let recording: RecordedLayers
    private let requestKeyframe: (Int) -> Void
    private(set) var report: WatchedReport
    private var packets: [Int: Packet] = [:]
    private var next: Int?
    private var frame: [UInt8] = []
    private var isInFrame = false
    private var needsKeyframe = true
    private var asked = MonotonicTime.zero
    private var last: RecordedLayers.Place?
    private var scratch = PacketBuffer()

    init(_ report: WatchedReport, recording: RecordedLayers, loop: Loop, requestKeyframe: @escaping (Int) -> Void) {
        self.loop = loop
        self.report = report
        self.recording = recording
        self.requestKeyframe = requestKeyframe
    }

    func begin(_ stream: IncomingStream) {}
    func end() {}

    func receive(_ packet: Span<UInt8>) {
        scratch.count = 0
        scratch.append(packet)
        guard let header = RTPHeader(parsing: scratch),
            let descriptor = VP8PayloadDescriptor(parsing: scratch, header: header)
        else { return }
        let number = unwrapped(Int(header.sequenceNumber.rawValue))
        guard number >= next ?? number else { return }
        let start = header.payloadOffset + descriptor.length
        packets[number] = Packet(
            payload: (start..<header.payloadEnd).map { scratch.bytes[$0] },
            isStart: descriptor.isStartOfPartition && descriptor.partition == 0, isEnd: header.marker,
            arrived: loop.now)
        if next == nil { next = number }
        release()
    }

    private func unwrapped(_ number: Int) -> Int {
        guard let next else { return number }
        return next + Int(Int16(truncatingIfNeeded: number - next))
    }

    private func release() {
        while let first = next {
            if let packet = packets.removeValue(forKey: first) {
                next = first + 1
                take(packet)
                continue
            }
            guard let oldest = packets.min(by: { $0.key < $1.key }), loop.now - oldest.value.arrived > Self.patience
            else { break }
            report.missing += oldest.key - first
            next = oldest.key
            isInFrame = false
            needsKeyframe = true
        }
        if needsKeyframe, loop.now - asked > .seconds(1) {
            asked = loop.now
            requestKeyframe(report.stream)
        }
    }

    private func take(_ packet: Packet) {
        if packet.isStart { (frame, isInFrame) = ([], true) }
        guard isInFrame else { return }
        frame += packet.payload
        guard packet.isEnd else { return }
        isInFrame = false
        let isKeyframe = frame.first.map { $0 & 1 == 0 } ?? false
        if isKeyframe { needsKeyframe = false }
        guard !needsKeyframe else { return }
        let place = recording.place(of: frame)
        if let place, let last, !isKeyframe, !recording.isNext(place, after: last) { report.seams += 1 }
        // Other participants send other videos.
        if place == nil, last != nil { report.harmed += 1 }
        last = place ?? last
        // The size of a keyframe (RFC 6386, section 9.1).
        let width = isKeyframe && frame.count >= 10 ? Int(frame[6]) | Int(frame[7] & 0x3f) << 8 : nil
        report.noteFrame(at: Double(loop.now.nanoseconds) / 1e9, width: width)
    }
}
