/// New values for the picture id and TL0PICIDX of a VP8 or VP9 payload, with their offsets. They let switched streams
/// continue without a jump.
public struct PictureRewrite: Sendable, Equatable {
    /// Offset from the start of the payload.
    public var pictureIDOffset: UInt8?
    public var isLongPictureID: Bool
    public var pictureID: UInt16
    public var tl0Offset: UInt8?
    public var tl0PictureIndex: UInt8

    /// Keeps the sizes of the descriptor's fields: an id of 15 bits keeps 15 bits, one of 7 keeps 7. Omits missing
    /// fields.
    public init(_ descriptor: VP8PayloadDescriptor, pictureID: UInt16, tl0PictureIndex: UInt8) {
        // A descriptor has at most six bytes.
        pictureIDOffset = descriptor.pictureIDOffset.map { UInt8($0) }
        isLongPictureID = descriptor.isLongPictureID
        self.pictureID = pictureID
        tl0Offset = descriptor.tl0Offset.map { UInt8($0) }
        self.tl0PictureIndex = tl0PictureIndex
    }

    /// The same for VP9.
    public init(_ descriptor: VP9PayloadDescriptor, pictureID: UInt16, tl0PictureIndex: UInt8) {
        pictureIDOffset = descriptor.pictureID == nil ? nil : 1
        isLongPictureID = descriptor.isLongPictureID
        self.pictureID = pictureID
        tl0Offset = descriptor.tl0Offset
        self.tl0PictureIndex = tl0PictureIndex
    }

    /// Writes the values into a packet at its payload's range. Ignores offsets beyond it.
    public func apply(to packet: inout PacketBuffer, payload: Range<Int>) {
        if let pictureIDOffset {
            let at = payload.lowerBound + Int(pictureIDOffset)
            if isLongPictureID, at + 1 < payload.upperBound {
                packet.setUInt16(pictureID | 0x8000, at: at)
            } else if !isLongPictureID, at < payload.upperBound {
                packet.bytes[at] = UInt8(pictureID & 0x7f)
            }
        }
        if let tl0Offset, payload.lowerBound + Int(tl0Offset) < payload.upperBound {
            packet.bytes[payload.lowerBound + Int(tl0Offset)] = tl0PictureIndex
        }
    }
}
