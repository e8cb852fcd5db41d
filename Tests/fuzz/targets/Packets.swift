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
    header.resolveExtensions(HeaderExtensionIDs(captureTime: 5, audioLevel: 6), in: packet)
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

func fuzzVP9(_ bytes: [UInt8]) {
    let packet = payload(bytes)
    guard let header = RTPHeader(parsing: packet),
        let descriptor = VP9PayloadDescriptor(parsing: packet, header: header)
    else { return }
    precondition(descriptor.length <= header.payloadLength)
    precondition(!descriptor.isKeyframeStart || descriptor.length < header.payloadLength)
    for layer in 0..<8 {
        let size = PayloadDescriptor.vp9(descriptor).size(packet, header: header, spatialLayer: layer)
        if let size { precondition((1...65536).contains(size.width) && (1...65536).contains(size.height)) }
    }
    precondition((1...8).contains(descriptor.spatialLayers(packet, header: header) ?? 1))
    // The ids that are written are read again, and nothing else changes.
    var numbered = packet
    PictureRewrite(descriptor, pictureID: 0x1234, tl0PictureIndex: 0x56)
        .apply(to: &numbered, payload: header.payloadOffset..<header.payloadEnd)
    guard let read = VP9PayloadDescriptor(parsing: numbered, header: header) else {
        preconditionFailure("numbers make the descriptor invalid")
    }
    precondition(read.length == descriptor.length && read.isKeyframeStart == descriptor.isKeyframeStart)
    precondition(read.pictureID == descriptor.pictureID.map { _ in descriptor.isLongPictureID ? 0x1234 : 0x34 })
    precondition(read.tl0PictureIndex == descriptor.tl0PictureIndex.map { _ in 0x56 })
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
