/// The picture ids of a stream of VP8 or VP9, counted by its sender. Each payloader begins with an id of its own, and receivers
/// take a jump for loss, so a stream that outlives its encoders needs this (RFC 7741 and RFC 9628, section 4.2).
public struct PictureNumbers: Sendable {
    private var picture = PictureNumber()
    private var isFirstPacket = false

    public init() {}

    /// The next packets are those of another frame.
    public mutating func beginFrame() {
        picture.id &+= 1
        isFirstPacket = true
    }

    /// Gives a packet the ids of its frame, in the fields that it has. TL0PICIDX counts the frames of the lowest
    /// temporal layer. Does nothing for other codecs.
    public mutating func number(_ packet: inout PacketBuffer, header: RTPHeader, as codec: PayloadDescriptor.Codec) {
        guard let descriptor = PayloadDescriptor(parsing: packet, header: header, as: codec) else { return }
        if isFirstPacket, descriptor.temporalLayer == 0 { picture.tl0Index &+= 1 }
        isFirstPacket = false
        descriptor.patch(picture)?.apply(to: &packet, payload: header.payloadOffset..<header.payloadEnd)
    }
}
