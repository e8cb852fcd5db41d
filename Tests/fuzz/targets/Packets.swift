internal import RTP

func packet(_ bytes: some Collection<UInt8>) -> PacketBuffer {
    var packet = PacketBuffer()
    _ = packet.assign(bytes.prefix(PacketBuffer.capacity))
    return packet
}

/// A header that parses is written back unchanged, and RTX unwrapping stays within the packet.
func fuzzRTP(_ bytes: [UInt8]) {
    var packet = packet(bytes)
    _ = RTPHeader(parsingProtected: packet)
    guard var header = RTPHeader(parsing: packet) else { return }
    precondition(header.payloadOffset <= header.payloadEnd && header.payloadEnd <= packet.count)
    header.resolveExtensions(HeaderExtensionIDs(captureTime: 5), in: packet)
    let before = Array(packet.bytes[..<packet.count])
    header.write(into: &packet)
    precondition(Array(packet.bytes[..<packet.count]) == before)
    _ = Retransmission.unwrap(&packet, header: header, payloadType: 96, ssrc: SSRC(1))
    precondition(packet.count <= before.count)
}

/// Feedback that is written and read again is the same.
func fuzzRTCP(_ bytes: [UInt8]) {
    guard let packets = RTCPPacket.parse(packet(bytes)) else { return }
    // Each packet of a compound has a header of four bytes.
    precondition(packets.count <= bytes.count / 4)
    for case .transportFeedback(let feedback) in packets {
        precondition(feedback.arrivals.count <= bytes.count)
        var written = PacketBuffer()
        guard RTCPPacket.transportFeedback(feedback).append(to: &written) else { continue }
        precondition(RTCPPacket.parse(written) == [.transportFeedback(feedback)])
    }
}

/// The bytes are the payload after a plain header.
private func payload(_ bytes: [UInt8]) -> PacketBuffer {
    packet([0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1] + bytes)
}

func fuzzVP8(_ bytes: [UInt8]) {
    let packet = payload(bytes)
    guard let header = RTPHeader(parsing: packet),
        let descriptor = VP8PayloadDescriptor(parsing: packet, header: header)
    else { return }
    precondition(descriptor.length <= header.payloadLength)
    checkSize(PayloadDescriptor.vp8(descriptor).size(packet, header: header))
}

/// A size that is read has pixels, and no more than its fields can hold.
private func checkSize(_ size: FrameSize?) {
    guard let size else { return }
    precondition((1...16384).contains(size.width) && (1...32768).contains(size.height))
}

func fuzzH264(_ bytes: [UInt8]) {
    let packet = payload(bytes)
    guard let header = RTPHeader(parsing: packet) else { return }
    let isStart = H264Payload.isKeyframeStart(packet, header: header)
    checkSize(PayloadDescriptor.h264(isKeyframeStart: isStart).size(packet, header: header))
}
