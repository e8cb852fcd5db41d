import RTP
import Testing

@Suite struct VP8PayloadTests {
    private func descriptor(_ payload: [UInt8]) -> VP8PayloadDescriptor? {
        let packet = rtp(payload)
        guard let header = RTPHeader(parsing: packet) else { return nil }
        return VP8PayloadDescriptor(parsing: packet, header: header)
    }

    @Test("A descriptor with all fields is read")
    func full() throws {
        let read = try value(descriptor([0x90, 0xf0, 0x81, 0x23, 0x45, 0x60, 0x00]))
        #expect(read.pictureID == 0x0123)
        #expect(read.isLongPictureID)
        #expect(read.tl0PictureIndex == 0x45)
        #expect(read.temporalLayer == 1)
        #expect(read.isLayerSync)
        #expect(read.length == 6)
        #expect(read.isKeyframeStart)
    }

    @Test("Only the first packet of a keyframe counts as one")
    func keyframes() {
        #expect(descriptor([0x10, 0x00])?.isKeyframeStart == true)
        #expect(descriptor([0x10, 0x01])?.isKeyframeStart == false)
        #expect(descriptor([0x00, 0x00])?.isKeyframeStart == false)
        #expect(descriptor([0x11, 0x00])?.isKeyframeStart == false)
        #expect(descriptor([0x10])?.isKeyframeStart == false)
    }

    @Test("S8: a truncated descriptor is refused")
    func short() {
        let full: [UInt8] = [0x90, 0xf0, 0x81, 0x23, 0x45, 0x60]
        for length in 0..<full.count { #expect(descriptor(Array(full[..<length])) == nil) }
        #expect(descriptor(full) != nil)
    }

    @Test("Frames get successive picture ids, and those of the lowest layer successive TL0PICIDX")
    func numbering() throws {
        var (numbers, seen) = (PictureNumbers(), [(id: UInt16, base: UInt8)]())
        // Of three payloaders, two packets a frame; layers 0, 1, 0.
        for (id, layer) in [(0x7ffe, 0x00), (0x0003, 0x40), (0x5000, 0x00)] as [(UInt16, UInt8)] {
            numbers.beginFrame()
            for _ in 0..<2 {
                var packet = rtp([0x90, 0xe0, 0x80 | UInt8(id >> 8), UInt8(id & 0xff), 0x99, layer, 0x00])
                let header = try value(RTPHeader(parsing: packet))
                numbers.number(&packet, header: header, as: .vp8)
                let read = try value(VP8PayloadDescriptor(parsing: packet, header: header))
                seen.append((try value(read.pictureID), try value(read.tl0PictureIndex)))
            }
        }
        #expect(seen.map { $0.id &- seen[0].id } == [0, 0, 1, 1, 2, 2])
        #expect(seen.map { $0.base &- seen[0].base } == [0, 0, 0, 0, 1, 1])
    }

    @Test("Picture id and TL0PICIDX are rewritten in place, in their own width", arguments: [true, false])
    func rewriting(isLong: Bool) throws {
        let payload: [UInt8] = isLong ? [0x90, 0xc0, 0x81, 0x23, 0x45, 0x99] : [0x90, 0xc0, 0x23, 0x45, 0x99]
        var packet = rtp(payload)
        let header = try value(RTPHeader(parsing: packet))
        let before = try value(VP8PayloadDescriptor(parsing: packet, header: header))
        PictureRewrite(before, pictureID: 0x7abc, tl0PictureIndex: 7)
            .apply(to: &packet, payload: header.payloadOffset..<header.payloadEnd)
        let after = try value(VP8PayloadDescriptor(parsing: packet, header: header))
        #expect(after.pictureID == (isLong ? 0x7abc : 0x3c))
        #expect(after.isLongPictureID == isLong)
        #expect(after.tl0PictureIndex == 7)
        #expect(packet.contents.last == 0x99)
    }
}

@Suite struct H264PayloadTests {
    private func isKeyframe(_ payload: [UInt8]) -> Bool {
        let packet = rtp(payload)
        return RTPHeader(parsing: packet).map { H264Payload.isKeyframeStart(packet, header: $0) } ?? false
    }

    @Test("IDR slices and parameter sets begin a keyframe: alone, aggregated or fragmented")
    func keyframes() {
        #expect(isKeyframe([0x65, 1, 2]))
        #expect(isKeyframe([0x67, 1, 2]))
        #expect(isKeyframe([0x78, 0, 2, 0x09, 0x10, 0, 3, 0x67, 1, 2]))
        #expect(isKeyframe([0x7c, 0x85, 1, 2]))
    }

    @Test("Other slices, later fragments and broken aggregates do not")
    func others() {
        #expect(!isKeyframe([0x61, 1, 2]))
        #expect(!isKeyframe([0x7c, 0x05, 1, 2]))
        #expect(!isKeyframe([0x7c, 0x81, 1, 2]))
        #expect(!isKeyframe([0x78, 0, 2, 0x61, 0x10]))
        #expect(!isKeyframe([0x78, 0xff, 0xff, 0x67]))
        #expect(!isKeyframe([0x78, 0, 0, 0, 0]))
        #expect(!isKeyframe([0x7c]))
        #expect(!isKeyframe([]))
    }
}
