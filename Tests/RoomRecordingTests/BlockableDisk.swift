import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization
import TestSupport
import Testing

@testable import RTP
@testable import RoomProtocol
@testable import RoomRecording
@testable import ServerCore

/// A disk that takes packets only as a test lets it: the thread that writes waits in it, as in the kernel.
final class BlockableDisk: Sendable {
    private let permits = DispatchSemaphore(value: 0)
    private let timers = Mutex<[(queue: DispatchQueue, body: @Sendable () -> Void)]>([])

    /// The settings of files on this disk. Their timers wait for `fireTimers`.
    var settings: RecordingSettings {
        var settings = RecordingSettings()
        settings.after = { [self] queue, _, body in timers.withLock { $0.append((queue, body)) } }
        settings.makePipeline = { [permits] codec, path, onMessage throws(MediaError) in
            let made = try RecordingPipeline(codec, to: path, onMessage: onMessage)
            made.source.element.source.peer?.watchBuffers { _ in permits.wait() }
            return made
        }
        return settings
    }

    /// Takes further packets.
    func take(_ packets: Int) { for _ in 0..<packets { permits.signal() } }

    /// How many timers run.
    var runningTimers: Int { timers.withLock { $0.count } }

    /// Lets the time of all running timers pass.
    func fireTimers() {
        let due = timers.withLock { timers in
            defer { timers = [] }
            return timers
        }
        for timer in due { timer.queue.sync(execute: timer.body) }
    }
}

/// A file of audio, written packet by packet.
final class WrittenFile {
    let sink: RecordingFile
    let failures = Collected<RoomError>()
    private var count = 0

    init(_ stream: Int = 7, participant: String = "p-4f1c", in folder: RecordingFolder) throws {
        let sink = try folder.begin(
            RecordedStream(room: try RoomName("kitchen"), participant: participant, stream: stream, codec: .opus)
        ) { [failures] in failures.append($0) }
        self.sink = try #require(sink as? RecordingFile)
    }

    /// Waits until the disk has so many packets, or is writing the last of them.
    func reach(_ packets: Int) async throws {
        try await requireEventually("\(packets) packets on the disk") { sink.progress.packets == packets }
    }

    /// Writes packets of 20 ms, of one byte each. Returns false if they have no room.
    func write(_ number: Int) -> Bool {
        var packets = RecordedPackets()
        packets.start = MonotonicTime(nanoseconds: 1_000_000_000)
        for index in count..<(count + number) {
            let numbers = Splice.Numbers(
                sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: index)),
                timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: index * 960)))
            packets.append(
                [0xf8], numbers, payloadType: Codec.opus.payloadType, marker: true, at: .milliseconds(Int64(index * 20))
            )
        }
        guard sink.write(packets) else { return false }
        count += number
        return true
    }
}
