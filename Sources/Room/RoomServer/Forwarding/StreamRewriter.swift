internal import RTP
internal import RoomProtocol
internal import PeerSession

/// What forwarding reads from a packet once, whoever it goes to.
struct ForwardedPacket {
    var header: RTPHeader
    /// Whether nothing later of the stream has come before it.
    var isNewest: Bool
    var isKeyframeStart: Bool
    var vp8: VP8PayloadDescriptor?
}

/// Joins the streams that one receiver carries after another into a single RTP stream without a seam.
///
/// The first stream keeps its numbers, so that a timestamp is the same on both sides of the server. A later one
/// continues where the last ended: sequence numbers by one, timestamps by the time that passed, VP8 picture ids by one,
/// because decoders take a jump for loss. A stream begins at a keyframe; what is older than it is left out.
struct StreamRewriter {
    private enum State {
        case idle
        case awaitingStart
        case flowing
    }

    private struct Position {
        var sequenceNumber: SequenceNumber
        var timestamp: RTPTimestamp
        var pictureID: UInt16
        var tl0PictureIndex: UInt8
        var time: MonotonicTime
    }

    private var state = State.idle
    private var codec = Codec.vp8
    private var payloadType: UInt8 = 0
    private var sequenceOffset = 0
    private var timestampTicks = 0
    private var pictureIDOffset: UInt16 = 0
    private var tl0Offset: UInt8 = 0
    /// The first packet of the stream that was sent, in the publisher's numbers.
    private var start = SequenceNumber(0)
    /// Set once the stream is so far on that nothing older than its start can arrive, and numbers may come round again.
    private var hasLeftStart = false
    private var last: Position?

    /// Whether a keyframe would help.
    var isAwaitingStart: Bool { state == .awaitingStart }

    /// What is added to timestamps; nil before the stream began.
    var timestampOffset: Int? { state == .flowing ? timestampTicks : nil }

    mutating func begin(_ codec: Codec, payloadType: UInt8) {
        self.codec = codec
        self.payloadType = payloadType
        state = .awaitingStart
    }

    mutating func end() { state = .idle }

    /// The packet's new numbers; nil when it is not to be sent.
    mutating func rewrite(_ packet: ForwardedPacket, now: MonotonicTime) -> Rewrite? {
        switch state {
        case .idle: return nil
        case .awaitingStart:
            // The start of a keyframe that was repaired comes after its other packets, which are gone: another keyframe
            // is better than one with a hole.
            guard packet.isNewest, packet.isKeyframeStart || codec.media == .audio else { return nil }
            join(packet, now)
        case .flowing:
            guard hasLeftStart || packet.header.sequenceNumber.distance(from: start) >= 0 else { return nil }
        }
        return advance(packet, now)
    }

    private mutating func join(_ packet: ForwardedPacket, _ now: MonotonicTime) {
        let header = packet.header
        start = header.sequenceNumber
        hasLeftStart = false
        state = .flowing
        guard let last else {
            sequenceOffset = 0
            timestampTicks = 0
            pictureIDOffset = 0
            tl0Offset = 0
            return
        }
        sequenceOffset = last.sequenceNumber.advanced(by: 1).distance(from: header.sequenceNumber)
        let elapsed = (now - last.time).nanoseconds
        let ticks = max(1, Int(elapsed / 1000) * Int(codec.clockRate / 1000) / 1000)
        timestampTicks = last.timestamp.advanced(by: ticks).distance(from: header.timestamp)
        pictureIDOffset = last.pictureID &+ 1 &- (packet.vp8?.pictureID ?? 0)
        tl0Offset = last.tl0PictureIndex &+ 1 &- (packet.vp8?.tl0PictureIndex ?? 0)
    }

    private mutating func advance(_ packet: ForwardedPacket, _ now: MonotonicTime) -> Rewrite {
        let header = packet.header
        var rewrite = Rewrite(
            payloadType: payloadType, sequenceNumber: header.sequenceNumber.advanced(by: sequenceOffset),
            timestamp: header.timestamp.advanced(by: timestampTicks), marker: header.marker)
        var pictureID: UInt16 = last?.pictureID ?? 0
        var tl0: UInt8 = last?.tl0PictureIndex ?? 0
        if let vp8 = packet.vp8 {
            pictureID = (vp8.pictureID ?? 0) &+ pictureIDOffset
            tl0 = (vp8.tl0PictureIndex ?? 0) &+ tl0Offset
            if pictureIDOffset != 0 || tl0Offset != 0 {
                rewrite.vp8 = VP8Rewrite(vp8, pictureID: pictureID & 0x7fff, tl0PictureIndex: tl0)
            }
        }
        guard last.map({ rewrite.sequenceNumber.isNewer(than: $0.sequenceNumber) }) ?? true else { return rewrite }
        if header.sequenceNumber.distance(from: start) > 16384 { hasLeftStart = true }
        last = Position(
            sequenceNumber: rewrite.sequenceNumber, timestamp: rewrite.timestamp, pictureID: pictureID,
            tl0PictureIndex: tl0, time: now)
        return rewrite
    }
}
