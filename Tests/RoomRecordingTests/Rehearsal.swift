import Foundation
import GStreamerKit
import Logging
import MediaGraph
import PeerLoop
import RTP
import RoomProtocol
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes
@testable import RoomRecording
@testable import ServerCore

/// One encoded frame of the test pattern, or one packet of its sound.
typealias Take = RTPBatch

/// Encodes the test pattern with the product's own encoders and payloaders.
func takes(_ codec: String, frames: Int, width: Int = 160, height: Int = 120) async throws -> [Take] {
    let taken = Collected<Take>()
    var bindings = NodeBindings()
    bindings.rtpOutputs["out"] = { taken.append($0) }
    let isOver = Collected<Bool>()
    bindings.events = { if case .ended = $0 { isOver.append(true) } }
    let clock = SteppedClock()
    let isVideo = codec != "opus"
    let pipeline = try await MediaPipeline(
        MediaGraph {
            Node.testPattern("pattern", width: width, height: height, framesPerSecond: 30, frames: frames)
            Chain(from: "pattern", port: isVideo ? "video" : "audio") {
                isVideo
                    ? Node.videoEncoder("encoder", codec: VideoCodec(rawValue: codec) ?? .vp8)
                    // A bare element, because the encoder node has a queue, which drops audio on a busy machine.
                    : Node.element("opusenc", ["frame-size": "20"])
                Node("rtp-output", name: "out", settings: ["payload-type": 96])
            }
            if !isVideo { Chain(from: "pattern", port: "video") { Node.null("unseen") } }
        }, bindings: bindings, limits: Limits(), clock: isVideo ? clock.clock : .monotonic)
    // Video at the pace of the encoder, which drops no frame then. On a stepped clock, the sound would fall behind the video.
    clock.run { [weak pipeline] _ in
        pipeline.map { $0.statistics.encoders.values.allSatisfy { $0.inFlight == 0 } } ?? true
    }
    try await pipeline.start()
    try await requireEventually("the end of the pattern") { isOver.count > 0 }
    await pipeline.stop()
    return taken.all
}

private final class NoSource: StreamSource {
    var isReady: Bool { true }
    var isPublisher: Bool { true }
    func requestKeyframe() {}
    func limit(to part: Carried, watched: [Int]?) {}
    func begin() {}
    func pause() {}
}

/// A stream of a server's loop that is recorded to a folder, without a network. Its time is that of the machine when it begins, and
/// goes on with the frames.
final class Rehearsal {
    let folder: RecordingFolder
    let loop: Loop
    let stream: PublishedStream
    private let codec: Codec
    private var number = 0
    private let began: MonotonicTime
    let failures = Collected<RoomError>()

    init(
        _ codec: Codec, in folder: RecordingFolder, participant: String = "p-4f1c", number: Int = 7,
        clock: CaptureClock = CaptureClock()
    ) throws {
        (self.codec, self.folder) = (codec, folder)
        began = MonotonicTime(nanoseconds: DispatchTime.now().uptimeNanoseconds)
        loop = Loop(now: began)
        stream = PublishedStream(
            StreamInfo(id: number, media: codec.media, codec: codec.rawValue, extraValue: ""), codec: codec,
            participant: participant, loop: loop, sources: [NoSource()])
        let recorded = RecordedStream(
            room: try RoomName("kitchen"), participant: participant, stream: number, codec: codec)
        stream.record(to: try folder.begin(recorded) { [failures] in failures.append($0) }, clock: clock)
    }

    /// Lets a frame arrive at this time.
    func play(_ take: Take, at seconds: Double) {
        let end = began + .milliseconds(Int64(seconds * 1000))
        while loop.nextTimer <= end {
            loop.now = max(loop.now, loop.nextTimer)
            while loop.fireNextTimer() {}
        }
        loop.now = end
        for index in 0..<take.count {
            var packet = PacketBuffer()
            let range = take.range(index)
            packet.bytes.copyBytes(from: take.bytes, range, to: 0)
            packet.count = range.count
            let ticks = UInt32(truncatingIfNeeded: Int(seconds * Double(codec.clockRate)))
            guard var header = RTPHeader(parsing: packet) else {
                Issue.record("not RTP")
                return
            }
            header.timestamp = RTPTimestamp(ticks)
            number += 1
            stream.layers[0].forward(packet, header: header, at: StreamPosition(epoch: 0, number: number))
        }
    }

    func play(_ takes: [Take], from start: Double = 0, every step: Double = 1.0 / 30) {
        for (index, take) in takes.enumerated() { play(take, at: start + Double(index) * step) }
    }

    /// Lets the next packets be lost.
    func lose(_ packets: Int) { number += packets }

    func end() async {
        stream.end()
        await folder.finish()
    }
}

extension TemporaryFolder {
    /// The names with this extension, sorted.
    func names(_ suffix: String, in folder: String? = nil) -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: folder ?? path)) ?? []
        return all.filter { $0.hasSuffix(suffix) }.sorted()
    }
}

func quiet() -> Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }

/// A log whose lines a test reads.
func log(to lines: Collected<String>) -> Logger { Logger(label: "test") { _ in LineLog(lines: lines) } }

private struct LineLog: LogHandler {
    let lines: Collected<String>
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.append("\(event.level) \(event.message)") }
}

func report(_ path: String) throws -> RecordingReport {
    try JSONDecoder().decode(RecordingReport.self, from: Data(contentsOf: URL(filePath: path)))
}
