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

/// A Matroska file of one stream. Created with the first packets, and followed by a report at its end.
///
/// Everything happens on a queue of its own, so that a slow disk delays nobody. Packets that wait are bounded. The queue itself
/// never waits for the disk, so that a file whose disk is blocked tells so.
// @unchecked: `write` and `end` only queue work, and all other state is used on the queue.
final class RecordingFile: RecordingSink, @unchecked Sendable {
    let stream: RecordedStream
    let clock: RecordingClock
    private let folder: String
    private let settings: RecordingSettings
    private let log: Logger
    private let failed: @Sendable (RoomError) -> Void
    private let ended: @Sendable (RecordingFile) -> Void
    private let queue = DispatchQueue(label: "connectlive.recording")
    let progress: RecordingProgress
    private let blocked = Atomic<Bool>(false)

    private var elements: RecordingPipeline?
    private var name = ""
    private var isCreated = false
    private var start = Date.distantPast
    /// Whether packets have no room, as the log tells.
    private var isDropping = false
    /// Why nothing is written any longer.
    private var failure: RoomError?
    /// Nil before the stream's end.
    private var summary: RecordingEnd?
    private var isClosing = false

    /// - Parameters:
    ///   - clock: shared by the files of a participant.
    ///   - failed: called at most once, on any thread.
    ///   - ended: called once, on any thread, when nothing is written any longer.
    init(
        _ stream: RecordedStream, in folder: String, clock: RecordingClock, settings: RecordingSettings, log: Logger,
        failed: @escaping @Sendable (RoomError) -> Void, ended: @escaping @Sendable (RecordingFile) -> Void
    ) {
        (self.stream, self.folder, self.clock, self.settings, self.log) = (stream, folder, clock, settings, log)
        (self.failed, self.ended) = (failed, ended)
        progress = RecordingProgress(capacity: settings.capacity)
    }

    private var path: String { "\(folder)/\(name).mkv" }
    /// The report's place on the disk before the end.
    private var reservedPath: String { "\(folder)/\(name).json.part" }

    // MARK: - On the loop

    func write(_ packets: RecordedPackets) -> Bool {
        guard progress.add(packets) else {
            queue.async { [self] in noteDrop() }
            return false
        }
        queue.async { [self] in record(packets) }
        return true
    }

    var isHalfEmpty: Bool { progress.isHalfEmpty }

    func end(_ end: RecordingEnd) { queue.async { [self] in finish(end) } }

    // MARK: - On any thread

    /// Whether its end waits for the disk, which takes nothing.
    var isBlocked: Bool { blocked.load(ordering: .relaxed) }

    /// The server ends: what the disk has not taken by now is lost.
    func giveUp() {
        queue.async { [self] in
            fail(
                RoomError(
                    .recordingFailed,
                    "The recording of stream \(stream.stream) ended: the server stopped before the disk had taken all of it."
                ))
        }
    }

    // MARK: - On the queue

    private func record(_ packets: RecordedPackets) {
        guard failure == nil, !isClosing else { return }
        do throws(RoomError) {
            let elements = if let elements { elements } else { try begin(packets) }
            var offset = 0
            for packet in packets.packets {
                let bytes = packets.bytes.span.bytes.extracting(offset..<(offset + packet.length))
                // The pipeline reports its errors on its bus.
                _ = elements.source.push(bytes, timestamp: UInt64(packet.time.nanoseconds))
                offset += packet.length
            }
        } catch {
            fail(error)
        }
    }

    private func begin(_ packets: RecordedPackets) throws(RoomError) -> RecordingPipeline {
        start = clock.date(at: packets.start)
        name = RecordingName.of(stream, at: start)
        if let problem = Self.create(path) { throw unwritable(problem) }
        if let problem = Self.create(reservedPath, size: RecordingReport.reserve) {
            unlink(path)
            throw unwritable(problem)
        }
        isCreated = true
        let made: RecordingPipeline
        do throws(MediaError) {
            made = try settings.makePipeline(stream.codec, path) { [weak self] message in self?.received(message) }
        } catch {
            throw unwritable(error.message)
        }
        made.source.element.source.watchBuffers { [progress] buffer in
            progress.pass(buffer.byteCount, at: buffer.timestamp ?? 0)
        }
        elements = made
        guard made.pipeline.play() else { throw unwritable("its pipeline does not start") }
        log.info("recording begun", metadata: metadata)
        return made
    }

    /// Creates a file of zeros, never over an existing one, nor where a link leads. Returns the number of the error if it cannot,
    /// and leaves nothing then.
    static func create(_ path: String, size: Int = 0) -> Int32? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
        guard descriptor >= 0 else { return errno }
        defer { Glibc.close(descriptor) }
        let problem = size > 0 ? posix_fallocate(descriptor, 0, size) : 0
        guard problem != 0 else { return nil }
        unlink(path)
        return problem
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
        guard let elements, failure == nil else { return close() }
        elements.source.endOfStream()
        watchDisk()
    }

    /// Packets had no room.
    private func noteDrop() {
        guard failure == nil, !isClosing, !isDropping else { return }
        isDropping = true
        log.warning("recording drops packets, because the disk is slow", metadata: metadata)
        watchDisk()
    }

    /// Fails if the disk takes nothing for long, while packets are dropped or the file ends.
    private func watchDisk() {
        let before = progress.packets
        settings.after(queue, settings.stallTime) { [self] in
            guard failure == nil, !isClosing else { return }
            guard summary != nil || !progress.isHalfEmpty else {
                isDropping = false
                return
            }
            guard progress.packets == before else { return watchDisk() }
            fail(unwritable("its disk took nothing for \(Int(settings.stallTime.rounded(.up))) s"))
        }
    }

    /// Everything is written.
    private func complete() {
        guard elements != nil, failure == nil else { return }
        log.info("recording finished", metadata: metadata)
        close()
    }

    private func fail(_ error: RoomError) {
        guard failure == nil, !isClosing else { return }
        failure = error
        var details = metadata
        details["error"] = "\(error)"
        log.warning("recording failed", metadata: details)
        guard summary == nil else { return close() }
        failed(error)
        // The stream answers with its end.
        settings.after(queue, settings.answerTime) { [self] in close() }
    }

    /// Stops the pipeline, on a queue of its own: it waits for the disk.
    private func close() {
        guard !isClosing else { return }
        isClosing = true
        guard let pipeline = elements?.pipeline else { return conclude() }
        elements = nil
        blocked.store(true, ordering: .relaxed)
        DispatchQueue(label: "connectlive.recording.stop").async { [self] in
            pipeline.stop()
            queue.async { [self] in conclude() }
        }
    }

    private func conclude() {
        if let known = summary?.start { start = clock.date(at: known) }
        if isCreated {
            MatroskaDate.set(start, in: path)
            report()
        }
        ended(self)
    }

    private func report() {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let report = RecordingReport(
            file: "\(name).mkv", room: stream.room.text, participant: stream.participant, stream: stream.stream,
            media: stream.codec.media.rawValue, codec: stream.codec.rawValue, start: RecordingReport.text(start),
            seconds: progress.time.seconds, bytes: attributes?[.size] as? Int ?? 0, packets: progress.packets,
            missing: summary?.missing ?? 0, dropped: summary?.dropped ?? 0, sort: summary?.sort,
            error: failure.map(Problem.init))
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

    private func unwritable(_ problem: Int32) -> RoomError {
        problem == ENOSPC ? full : unwritable(String(cString: strerror(problem)))
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
