internal import RTP
internal import RoomProtocol
internal import ServerCore

/// The packets of a recorded stream, as the server would write them to a file.
///
/// On the simulation's thread.
package final class RecordingLog {
    /// In the order of the file. A frame of audio is one packet.
    private var parts: [(frame: UInt32, index: UInt8, count: UInt8)] = []
    /// Packets that never came, once the recording has ended.
    package fileprivate(set) var missing: Int?
    /// Packets that were lost on their way to the server, repairs not counted.
    package internal(set) var lost = 0

    package var count: Int { parts.count }

    /// The first two packets between which one is missing, or that are not in order. Nil if there are none.
    package var gap: String? {
        zip(parts, parts.dropFirst()).first { part, next in
            let isNext = next.frame == part.frame && next.index == part.index + 1
            let beginsNext = next.frame == part.frame + 1 && next.index == 0 && part.index + 1 == part.count
            return !isNext && !beginsNext
        }.map { "\($0), \($1)" }
    }

    fileprivate func append(_ packet: Span<UInt8>, isAudio: Bool) {
        let payload = packet.extracting(RTPHeader.minimumLength..<packet.count)
        if isAudio {
            if let (_, number) = AudioSource.contents(of: payload) { parts.append((number, 0, 1)) }
        } else if let part = FramePart(payload: payload) {
            parts.append((part.frame, part.index, part.count))
        }
    }
}

/// Where the packets of one recording go.
final class LoggedRecording: RecordingSink {
    private let log: RecordingLog
    private let isAudio: Bool

    init(_ stream: RecordedStream, to log: RecordingLog) {
        self.log = log
        isAudio = stream.codec.media == .audio
    }

    let isHalfEmpty = true

    func write(_ packets: RecordedPackets) -> Bool {
        var offset = 0
        for packet in packets.packets {
            log.append(packets.bytes.span.extracting(offset..<(offset + packet.length)), isAudio: isAudio)
            offset += packet.length
        }
        return true
    }

    func end(_ end: RecordingEnd) { log.missing = end.missing }
}
