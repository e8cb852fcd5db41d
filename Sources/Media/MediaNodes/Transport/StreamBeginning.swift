package import GStreamerKit
import Synchronization

/// Whether nothing before this RTP packet is needed to decode its stream: it begins a keyframe or carries audio.
func beginsStream(_ packet: RawSpan, encoding: String) -> Bool {
    guard let start = payloadStart(of: packet), start < packet.byteCount else { return false }
    let payload = packet.extracting(droppingFirst: start)
    switch encoding {
    case "vp8": return beginsVP8Keyframe(payload)
    case "vp9": return beginsVP9Keyframe(payload)
    case "h264": return beginsH264Parameters(payload)
    default: return encoding == "opus"
    }
}

/// The RTP sequence number: RFC 3550, section 5.1.
func rtpSequenceNumber(of packet: RawSpan) -> UInt16? {
    guard packet.byteCount >= 12 else { return nil }
    return packet.word(at: 2)
}

/// The length of the header, its sources and its extension: RFC 3550, section 5.1.
private func payloadStart(of packet: RawSpan) -> Int? {
    guard packet.byteCount >= 12 else { return nil }
    let flags = packet.byte(at: 0)
    var start = 12 + 4 * Int(flags & 0x0f)
    if flags & 0x10 != 0 {
        guard packet.byteCount >= start + 4 else { return nil }
        start += 4 + 4 * Int(packet.word(at: start + 2))
    }
    return start
}

/// The payload descriptor (RFC 7741, section 4.2) names the start of the first partition, whose first bit is 0 in a
/// keyframe (section 4.3).
private func beginsVP8Keyframe(_ payload: RawSpan) -> Bool {
    let descriptor = payload.byte(at: 0)
    guard descriptor & 0x1f == 0x10 else { return false }
    var place = 1
    if descriptor & 0x80 != 0 {
        guard payload.byteCount > 1 else { return false }
        let extensions = payload.byte(at: 1)
        place = 2
        if extensions & 0x80 != 0 {
            guard payload.byteCount > place else { return false }
            place += payload.byte(at: place) & 0x80 != 0 ? 2 : 1
        }
        if extensions & 0x40 != 0 { place += 1 }
        if extensions & 0x30 != 0 { place += 1 }
    }
    return payload.byteCount > place && payload.byte(at: place) & 0x01 == 0
}

/// The payload descriptor (RFC 9628, section 4.2) names the first packet of a frame that depends on no earlier one, and
/// of the lowest spatial layer.
private func beginsVP9Keyframe(_ payload: RawSpan) -> Bool {
    let descriptor = payload.byte(at: 0)
    let (hasPictureID, isInterPicture, hasLayers, isFirst) = (0x80, 0x40, 0x20, 0x08) as (UInt8, UInt8, UInt8, UInt8)
    guard descriptor & isFirst != 0, descriptor & isInterPicture == 0 else { return false }
    guard descriptor & hasLayers != 0 else { return true }
    var place = 1
    if descriptor & hasPictureID != 0 {
        guard payload.byteCount > 1 else { return false }
        place += payload.byte(at: 1) & 0x80 != 0 ? 2 : 1
    }
    return payload.byteCount > place && payload.byte(at: place) & 0x0e == 0
}

/// Joins the layer frames of VP9's frames for GStreamer's depayloader, which passes all of a frame on as one buffer, and drops
/// the first ones at the bit with which a higher one begins. Sees the packets in their order.
package struct SpatialLayerJoiner {
    /// Joins the layer frames of the packets that pass a pad in order.
    package static func join(at pad: Pad) {
        let joiner = Mutex(SpatialLayerJoiner())
        pad.watchBuffers { buffer in
            guard let change = buffer.read({ packet in joiner.withLock { $0.take(packet) } }) ?? nil else { return }
            buffer.write { $0.storeBytes(of: change.byte, toByteOffset: change.place, as: UInt8.self) }
        }
    }

    /// The timestamp of the packet before.
    private var last: UInt32?

    /// The place of the byte with that bit, and the byte without it. Nil if the packet needs no change, also as the first one of a
    /// frame whose lowest layers are missing.
    mutating func take(_ packet: RawSpan) -> (place: Int, byte: UInt8)? {
        let timestamp = rtpTimestamp(of: packet)
        defer { last = timestamp }
        guard timestamp == last, let start = payloadStart(of: packet), start < packet.byteCount else { return nil }
        let descriptor = packet.byte(at: start)
        let (hasPictureID, hasLayers, isFirst) = (0x80, 0x20, 0x08) as (UInt8, UInt8, UInt8)
        guard descriptor & isFirst != 0, descriptor & hasLayers != 0 else { return nil }
        var place = start + 1
        if descriptor & hasPictureID != 0 {
            guard packet.byteCount > place else { return nil }
            place += packet.byte(at: place) & 0x80 != 0 ? 2 : 1
        }
        guard packet.byteCount > place, packet.byte(at: place) & 0x0e != 0 else { return nil }
        return (start, descriptor & ~isFirst)
    }
}

/// A sequence parameter set, alone or first of an aggregate: RFC 6184, sections 5.4 and 5.7.1. Senders put it before each
/// keyframe.
private func beginsH264Parameters(_ payload: RawSpan) -> Bool {
    let (sequenceParameters, aggregate): (UInt8, UInt8) = (7, 24)
    switch payload.byte(at: 0) & 0x1f {
    case sequenceParameters: return true
    case aggregate: return payload.byteCount > 3 && payload.byte(at: 3) & 0x1f == sequenceParameters
    default: return false
    }
}

extension RawSpan {
    fileprivate func byte(at place: Int) -> UInt8 { unsafeLoad(fromByteOffset: place, as: UInt8.self) }

    fileprivate func word(at place: Int) -> UInt16 {
        UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: place, as: UInt16.self))
    }
}
