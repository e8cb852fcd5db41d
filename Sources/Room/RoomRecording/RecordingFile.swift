internal import Foundation
internal import GStreamerKit
internal import Glibc
internal import Logging
internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import ServerCore
internal import Synchronization

/// The time of day at times of the monotonic clock. A later step of the machine's clock does not change it.
struct RecordingClock {
    var date = Date()
    var at = MonotonicTime(nanoseconds: GStreamer.now.nanoseconds)

    func date(at time: MonotonicTime) -> Date { date + (time - at).seconds }
}

/// A Matroska file of one stream. Created with the first packets, and followed by a report at its end.
///
/// Everything happens on a queue of its own, so that a slow disk delays nobody. Packets that wait are bounded.
// @unchecked: `write` and `end` only queue work, and all other state is used on the queue.
final class RecordingFile: RecordingSink, @unchecked Sendable {
    /// The most bytes that wait for the disk: ten seconds of 6 Mbit/s.
    static let capacity = 8 * 1024 * 1024
    /// How long the end may take to be written, or to follow a failure.
    private static let finishTime = 4.0

    private let stream: RecordedStream
    private let folder: String
    private let clock: RecordingClock
    private let log: Logger
    private let failed: @Sendable (RoomError) -> Void
    private let ended: @Sendable () -> Void
    private let queue = DispatchQueue(label: "connectlive.recording")
    private let waiting = Atomic<Int>(0)

    private var elements: RecordingPipeline?
    private var name = ""
    private var isCreated = false
    private var start = Date.distantPast
    private var newest = TimeInterval.zero
    private var packets = 0
    /// Why nothing is written any longer.
    private var failure: RoomError?
    /// Nil before the stream's end.
    private var summary: RecordingEnd?
    private var isOver = false

    /// - Parameters:
    ///   - clock: shared by files that are written at the same time.
    ///   - failed: called at most once, on any thread.
    ///   - ended: called once, on any thread, when nothing is written any longer.
    init(
        _ stream: RecordedStream, in folder: String, clock: RecordingClock, log: Logger,
        failed: @escaping @Sendable (RoomError) -> Void, ended: @escaping @Sendable () -> Void
    ) {
        (self.stream, self.folder, self.clock, self.log) = (stream, folder, clock, log)
        (self.failed, self.ended) = (failed, ended)
    }

    private var path: String { "\(folder)/\(name).mkv" }
    /// The report's place on the disk before the end.
    private var reservedPath: String { "\(folder)/\(name).json.part" }

    // MARK: - On the loop

    func write(_ packets: RecordedPackets) -> Bool {
        let size = packets.bytes.count
        guard waiting.load(ordering: .relaxed) + size <= Self.capacity else { return false }
        waiting.add(size, ordering: .relaxed)
        queue.async { [self] in record(packets) }
        return true
    }

    func end(_ end: RecordingEnd) { queue.async { [self] in finish(end) } }

    // MARK: - On the queue

    private func record(_ packets: RecordedPackets) {
        guard failure == nil, !isOver else { return }
        do throws(RoomError) {
            let elements = if let elements { elements } else { try begin(packets) }
            var offset = 0
            for packet in packets.packets {
                let bytes = packets.bytes.span.bytes.extracting(offset..<(offset + packet.length))
                // The pipeline reports its errors on its bus.
                _ = elements.source.push(bytes, timestamp: UInt64(packet.time.nanoseconds))
                offset += packet.length
                newest = packet.time
            }
            self.packets += packets.packets.count
        } catch {
            fail(error)
        }
    }

    private func begin(_ packets: RecordedPackets) throws(RoomError) -> RecordingPipeline {
        start = clock.date(at: packets.start)
        name = RecordingName.of(stream, at: start)
        if let reason = Self.create(path) { throw unwritable(reason) }
        isCreated = true
        if let reason = Self.create(reservedPath, size: RecordingReport.reserve) { throw unwritable(reason) }
        let made: RecordingPipeline
        do throws(MediaError) {
            made = try RecordingPipeline(stream.codec, to: path) { [weak self] message in self?.received(message) }
        } catch {
            throw unwritable(error.message)
        }
        made.source.element.source.watchBuffers { [weak self] buffer in
            _ = self?.waiting.subtract(buffer.byteCount, ordering: .relaxed)
        }
        elements = made
        guard made.pipeline.play() else { throw unwritable("its pipeline does not start") }
        log.info("recording begun", metadata: metadata)
        return made
    }

    /// Creates a file of zeros, never over an existing one, nor where a link leads. Returns why it cannot.
    static func create(_ path: String, size: Int = 0) -> String? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        defer { Glibc.close(descriptor) }
        let problem = size > 0 ? posix_fallocate(descriptor, 0, size) : 0
        return problem == 0 ? nil : String(cString: strerror(problem))
    }

    /// On a thread of the pipeline.
    private func received(_ message: BusMessage) {
        switch message {
        case .endOfStream: queue.async { [self] in complete() }
        case .error(let failure):
            queue.async { [self] in
                let isFull = failure.kind == .noSpace
                fail(isFull ? full : unwritable(failure.message))
            }
        case .warning, .missingPlugin, .latencyChanged, .stateRequested: break
        }
    }

    private func finish(_ end: RecordingEnd) {
        summary = end
        // Without packets, or after a failure.
        guard let elements else { return close() }
        elements.source.endOfStream()
        queue.asyncAfter(deadline: .now() + Self.finishTime) { [self] in
            fail(unwritable("its end was not written in \(Int(Self.finishTime)) s"))
        }
    }

    /// Everything is written.
    private func complete() {
        guard elements != nil else { return }
        close()
        log.info("recording finished", metadata: metadata)
    }

    private func fail(_ error: RoomError) {
        guard failure == nil, !isOver else { return }
        failure = error
        elements?.pipeline.stop()
        elements = nil
        var details = metadata
        details["error"] = "\(error)"
        log.warning("recording failed", metadata: details)
        guard summary == nil else { return close() }
        failed(error)
        // The stream answers with its end.
        queue.asyncAfter(deadline: .now() + Self.finishTime) { [self] in close() }
    }

    private func close() {
        guard !isOver else { return }
        isOver = true
        elements?.pipeline.stop()
        elements = nil
        if let known = summary?.start { start = clock.date(at: known) }
        if isCreated {
            MatroskaDate.set(start, in: path)
            report()
        }
        ended()
    }

    private func report() {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let report = RecordingReport(
            file: "\(name).mkv", room: stream.room.text, participant: stream.participant, stream: stream.stream,
            media: stream.codec.media.rawValue, codec: stream.codec.rawValue, start: RecordingReport.text(start),
            seconds: newest.seconds, bytes: attributes?[.size] as? Int ?? 0, packets: packets,
            missing: summary?.missing ?? 0, dropped: summary?.dropped ?? 0, error: failure.map(Problem.init))
        do {
            try report.write(over: reservedPath, as: "\(folder)/\(name).json")
        } catch {
            log.warning("recording without its report", metadata: metadata)
        }
    }

    private var metadata: Logger.Metadata {
        [
            "room": "\(stream.room)", "participant": "\(stream.participant)", "stream": "\(stream.stream)",
            "file": "\(name).mkv",
        ]
    }

    private var full: RoomError {
        RoomError(
            .recordingFailed,
            "The recording of stream \(stream.stream) ended: the server's disk is full. The stream goes on.")
    }

    private func unwritable(_ reason: String) -> RoomError {
        RoomError(
            .recordingFailed,
            "The recording of stream \(stream.stream) ended: the server cannot write it: \(reason.trimmedSentence). The stream "
                + "goes on.")
    }
}
