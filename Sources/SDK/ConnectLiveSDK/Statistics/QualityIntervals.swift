internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The `QualityIntervals` of one room.
final class QualityMonitor: Sendable {
    private let intervals = Mutex(QualityIntervals())

    func next(_ statistics: RoomStatistics) -> QualityStat { intervals.withLock { $0.next(statistics) } }
}

/// Makes the figures of `RoomDelegate.onStat`: remembers the counters of the last one. A value.
struct QualityIntervals {
    private var up: SessionStatistics?
    private var down: SessionStatistics?

    /// The figures since the last call. Counters of sessions and streams that are new count from zero.
    mutating func next(_ statistics: RoomStatistics) -> QualityStat {
        let stat = QualityStat(
            localStat: statistics.up.map { LocalQualityStat($0, after: up?.isSame(as: $0) == true ? up : nil) },
            remoteStat: statistics.down.map { RemoteQualityStat($0, after: down?.isSame(as: $0) == true ? down : nil) })
        (up, down) = (statistics.up, statistics.down)
        return stat
    }
}

extension SessionStatistics {
    fileprivate func isSame(as other: SessionStatistics) -> Bool { index == other.index }

    fileprivate func sent(_ stream: Sent) -> Sent? { sent.first { $0.ssrc == stream.ssrc } }

    fileprivate func received(_ stream: Received) -> Received? { received.first { $0.mid == stream.mid } }
}

extension LocalQualityStat {
    fileprivate init(_ now: SessionStatistics, after before: SessionStatistics?) {
        index = now.index
        audioMetrics = now.sent.filter { !$0.isVideo }.map { LocalAudioMetrics($0, after: before?.sent($0)) }
        videoMetrics = now.sent.filter(\.isVideo).map { LocalVideoMetrics($0, after: before?.sent($0)) }
        bytesSentPerInterval = now.transport.bytesSent - (before?.transport.bytesSent ?? 0)
        packetsSentPerInterval = now.transport.packetsSent - (before?.transport.packetsSent ?? 0)
        currentRTT = now.roundTrip
    }
}

extension RemoteQualityStat {
    fileprivate init(_ now: SessionStatistics, after before: SessionStatistics?) {
        index = now.index
        audioMetrics = now.received.filter { $0.media == .audio }.compactMap {
            RemoteAudioMetrics($0, after: before?.received($0))
        }
        videoMetrics = now.received.filter { $0.media == .video }.compactMap {
            RemoteVideoMetrics($0, after: before?.received($0))
        }
        availableIncomingBitrate = now.transport.incomingBitsPerSecond
        bytesReceivedPerInterval = now.transport.bytesReceived - (before?.transport.bytesReceived ?? 0)
        packetsReceivedPerInterval = now.transport.packetsReceived - (before?.transport.packetsReceived ?? 0)
        currentRTT = now.roundTrip
    }
}

extension LocalVideoMetrics {
    fileprivate init(_ now: SessionStatistics.Sent, after before: SessionStatistics.Sent?) {
        self.init(
            participantId: now.participant, streamId: now.stream, profile: now.profile.rawValue,
            bytesSent: now.bytesSent, packetsSent: now.packetsSent,
            packetsSentPerInterval: now.packetsSent - (before?.packetsSent ?? 0),
            framesEncoded: now.encoder?.framesEncoded, framesSent: now.framesSent, pliCount: now.pictureLosses,
            srcFrames: now.encoder?.framesCaptured, frameWidth: now.width, frameHeight: now.height,
            framesPerSecond: now.encoder?.encodedPerSecond)
    }
}

extension LocalAudioMetrics {
    fileprivate init(_ now: SessionStatistics.Sent, after before: SessionStatistics.Sent?) {
        self.init(
            participantId: now.participant, streamId: now.stream, bytesSent: now.bytesSent,
            packetsSent: now.packetsSent, packetsSentPerInterval: now.packetsSent - (before?.packetsSent ?? 0),
            srcAudioLevel: now.sound?.level)
    }
}

extension RemoteVideoMetrics {
    /// Nil for a receiver that carries no stream.
    fileprivate init?(_ now: SessionStatistics.Received, after before: SessionStatistics.Received?) {
        guard let stream = now.stream, let participant = now.participant else { return nil }
        self.init(
            participantId: participant, streamId: stream, receiverId: now.receiverId,
            bytesReceived: now.bytesReceived, framesReceived: now.totals.framesReceived,
            framesDecoded: now.totals.framesDecoded, pliCount: now.pictureLosses, packetsLost: now.packetsLost,
            packetsLostPerInterval: now.packetsLost - (before?.packetsLost ?? 0), frameWidth: now.width,
            frameHeight: now.height, framesPerSecond: now.framesPerSecond)
    }
}

extension RemoteAudioMetrics {
    /// Likewise.
    fileprivate init?(_ now: SessionStatistics.Received, after before: SessionStatistics.Received?) {
        guard let stream = now.stream, let participant = now.participant else { return nil }
        self.init(
            participantId: participant, streamId: stream, receiverId: now.receiverId,
            bytesReceived: now.bytesReceived, totalSamplesReceived: now.samplesReceived, packetsLost: now.packetsLost,
            packetsLostPerInterval: now.packetsLost - (before?.packetsLost ?? 0), audioLevel: now.audioLevel)
    }
}
