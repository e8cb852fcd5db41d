internal import ClientCore
internal import Foundation
internal import MediaGraph
internal import PeerLoop
internal import RTP
internal import RoomClient
internal import RoomProtocol

/// The VP8 frames of IVF files: one video, recorded once for each layer.
struct RecordedLayers: Sendable {
    struct Frame: Sendable {
        var bytes: [UInt8]
        var isKeyframe: Bool
    }

    /// The place of a frame in the recording. The layers count from the lowest.
    struct Place: Sendable, Hashable {
        var layer: Int
        var index: Int
    }

    /// The frames of each layer, all as many.
    let layers: [[Frame]]
    private let places: [[UInt8]: Place]

    init(files: [String]) throws {
        let all = try files.map { try Self.frames(of: $0) }
        let count = all.map(\.count).min() ?? 0
        layers = all.map { Array($0.prefix(count)) }
        guard layers.allSatisfy({ $0.first?.isKeyframe == true }) else {
            throw BenchmarkError("A recording does not begin with a keyframe.")
        }
        var places: [[UInt8]: Place] = [:]
        for (layer, frames) in layers.enumerated() {
            for (index, frame) in frames.enumerated() { places[frame.bytes] = Place(layer: layer, index: index) }
        }
        self.places = places
    }

    /// Whether a frame follows another one of its layer. The recording begins again.
    func isNext(_ place: Place, after last: Place) -> Bool {
        place.layer == last.layer && place.index == (last.index + 1) % layers[last.layer].count
    }

    /// In bits per second.
    func rate(of layer: Int, framesPerSecond: Int) -> Int {
        layers[layer].reduce(0) { $0 + $1.bytes.count } * 8 * framesPerSecond / layers[layer].count
    }

    /// Where a frame with these bytes lies. Nil if the recording has no such frame.
    func place(of bytes: [UInt8]) -> Place? { places[bytes] }

    /// A header of 32 bytes, then for each frame its size in 4 bytes, its time in 8, and its bytes.
    private static func frames(of file: String) throws -> [Frame] {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        guard bytes.count >= 32, bytes[0..<4].elementsEqual("DKIF".utf8), bytes[8..<12].elementsEqual("VP80".utf8)
        else {
            throw BenchmarkError("\(file) is no IVF file with VP8.")
        }
        var frames: [Frame] = []
        var offset = 32
        while offset + 12 <= bytes.count {
            let length = (0..<4).reversed().reduce(0) { $0 << 8 | Int(bytes[offset + $1]) }
            guard length > 0, offset + 12 + length <= bytes.count else { break }
            let frame = Array(bytes[offset + 12..<offset + 12 + length])
            // The P bit (RFC 6386, section 9.1).
            frames.append(Frame(bytes: frame, isKeyframe: frame[0] & 1 == 0))
            offset += 12 + length
        }
        return frames
    }
}

/// Publishes a recording with its layers, as packets, again and again.
final class RecordedTrack: OutgoingTrack, @unchecked Sendable {
    // Sendable by hand: everything is used on the loop.
    private static let framesPerSecond = 25
    private static let longestPayload = 1100

    let codec = Codec.vp8
    var encoderStatistics: MediaStatistics.VideoEncoder? { encoderStatistics(of: .full) }
    let layers: [VideoLayer]

    private let recording: RecordedLayers
    private let loop: Loop
    private var index = 0
    private var pictureID: UInt16 = 0
    private var receiver: TrackReceiver?
    private lazy var timer = loop.makeTimer { [unowned self] in sendFrame() }
    private var due = MonotonicTime.zero

    init(_ recording: RecordedLayers, loop: Loop) {
        self.recording = recording
        self.loop = loop
        layers = VideoLayer.layers(recording.layers.count)
    }

    /// An encoder that keeps its rate.
    func encoderStatistics(of layer: VideoLayer) -> MediaStatistics.VideoEncoder? {
        guard let index = layers.firstIndex(of: layer) else { return nil }
        var statistics = MediaStatistics.VideoEncoder()
        statistics.wishedBitsPerSecond = recording.rate(of: index, framesPerSecond: Self.framesPerSecond)
        return statistics
    }

    /// On the loop.
    func begin() {
        due = loop.now
        timer.arm(at: due)
    }

    func connect(_ receiver: TrackReceiver?) { self.receiver = receiver }

    /// The next keyframe of a recording comes soon enough.
    func requestKeyframe(of layer: VideoLayer) {}
    func requestKeyframe() {}

    private func sendFrame() {
        let now = loop.now
        let timestamp = UInt32(truncatingIfNeeded: now.nanoseconds * 9 / 100_000)
        for (layer, frames) in zip(layers, recording.layers) { send(frames[index], layer, timestamp, now) }
        index = (index + 1) % recording.layers[0].count
        pictureID = (pictureID + 1) & 0x7fff
        due = due + TimeInterval(nanoseconds: 1_000_000_000 / Int64(Self.framesPerSecond))
        timer.arm(at: due)
    }

    private func send(_ frame: RecordedLayers.Frame, _ layer: VideoLayer, _ timestamp: UInt32, _ now: MonotonicTime) {
        var batch = RTPBatch(
            captureTime: MediaTime(nanoseconds: now.nanoseconds), rtpTimestamp: timestamp, isKeyframe: frame.isKeyframe,
            layer: layer)
        for start in stride(from: 0, to: frame.bytes.count, by: Self.longestPayload) {
            let end = min(start + Self.longestPayload, frame.bytes.count)
            batch.bytes += [0x80, (end == frame.bytes.count ? 0x80 : 0) | Codec.vp8.payloadType, 0, 0]
            batch.bytes += stride(from: 24, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: timestamp >> UInt32($0))
            }
            batch.bytes += [0, 0, 0, 1]
            // The payload descriptor: X, S, then I, then a picture id of 15 bits (RFC 7741, section 4.2).
            batch.bytes += [start == 0 ? 0x90 : 0x80, 0x80]
            batch.bytes += [0x80 | UInt8(pictureID >> 8), UInt8(truncatingIfNeeded: pictureID)]
            batch.bytes += frame.bytes[start..<end]
            batch.ends.append(batch.bytes.count)
        }
        receiver?.take(batch)
    }
}
