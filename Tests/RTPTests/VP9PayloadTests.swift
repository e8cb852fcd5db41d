import TestSupport
import Testing

@testable import RTP

/// A keyframe's header of 320x180, profile 0.
private let keyframe: [UInt8] = [0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xf0, 0x0b, 0x30, 0]
/// Three spatial layers of 160x90, 320x180 and 640x360, and a group of four frames in three temporal layers.
private let structure: [UInt8] = [
    0x58, 0, 160, 0, 90, 1, 64, 0, 180, 2, 128, 1, 104, 4, 0x14, 4, 0x54, 1, 0x34, 2, 0x54, 1,
]

@Suite struct VP9PayloadTests {
    private func descriptor(_ payload: [UInt8]) -> VP9PayloadDescriptor? {
        let packet = rtp(payload)
        guard let header = RTPHeader(parsing: packet) else { return nil }
        return VP9PayloadDescriptor(parsing: packet, header: header)
    }

    @Test func `a descriptor with all fields of the fixed form is read`() throws {
        // I, P, L, E; a picture id of 15 bits; TID 2, U, SID 1, D; TL0PICIDX.
        let read = try value(descriptor([0xe4, 0x81, 0x23, 0x53, 0x45, 0x86, 0]))
        #expect(read.pictureID == 0x0123 && read.isLongPictureID)
        #expect(read.tl0PictureIndex == 0x45 && read.tl0Offset == 4)
        #expect(read.temporalLayer == 2 && read.spatialLayer == 1)
        #expect(read.isSwitchingPoint && read.isInterLayer && read.isInterPicture && read.hasLayers)
        #expect(read.isEndOfFrame && !read.isStartOfFrame && !read.isFlexible && !read.isNotForHigherLayers)
        #expect(read.length == 5 && !read.hasStructure)
    }

    @Test func `a flexible descriptor names up to three pictures, and has no TL0PICIDX`() throws {
        let read = try value(descriptor([0xfc, 0x23, 0x20, 0x03, 0x05, 0x06, 0x86]))
        #expect(read.pictureID == 0x23 && !read.isLongPictureID)
        #expect(read.isFlexible && read.tl0PictureIndex == nil && read.temporalLayer == 1)
        #expect(read.length == 6)
        #expect(descriptor([0xfc, 0x23, 0x20, 0x03, 0x05, 0x07, 0x09, 0x86]) == nil, "four frames")
        #expect(descriptor([0x7c, 0x20, 0x02, 0x86]) == nil, "references without a picture id")
    }

    @Test func `the scalability structure names the layers and their sizes`() throws {
        let packet = rtp([0xaa, 0x81, 0x23, 0x00, 0x45] + structure + keyframe)
        let header = try value(RTPHeader(parsing: packet))
        let read = try value(VP9PayloadDescriptor(parsing: packet, header: header))
        #expect(read.length == 5 + structure.count && read.isKeyframeStart)
        #expect(read.spatialLayers(packet, header: header) == 3)
        let sizes = (0..<4).map { read.frameSize(packet, header: header, spatialLayer: $0) }
        #expect(sizes.map { $0?.width } == [160, 320, 640, nil])
        #expect(sizes.map { $0?.height } == [90, 180, 360, nil])
    }

    @Test func `without a structure, the header of the keyframe tells the size`() throws {
        let packet = rtp([0x8c, 0x05] + keyframe)
        let header = try value(RTPHeader(parsing: packet))
        let read = try value(VP9PayloadDescriptor(parsing: packet, header: header))
        #expect(read.spatialLayers(packet, header: header) == nil)
        #expect(read.frameSize(packet, header: header) == FrameSize(width: 320, height: 180))
        #expect(read.frameSize(packet, header: header, spatialLayer: 1) == nil)
        // The same with a sync code that is none.
        let broken = rtp([0x8c, 0x05, 0x82, 0x49, 0x83, 0x43] + keyframe[4...])
        #expect(read.frameSize(broken, header: header) == nil)
    }

    @Test func `only the first packet of the lowest spatial layer of a keyframe counts as one`() {
        #expect(descriptor([0x08] + keyframe)?.isKeyframeStart == true)
        #expect(descriptor([0x00] + keyframe)?.isKeyframeStart == false, "not the first packet")
        #expect(descriptor([0x48] + keyframe)?.isKeyframeStart == false, "depends on earlier frames")
        #expect(descriptor([0x28, 0x02, 0x00] + keyframe)?.isKeyframeStart == false, "a higher spatial layer")
        #expect(descriptor([0x28, 0x00, 0x00] + keyframe)?.isKeyframeStart == true)
        #expect(descriptor([0x08, 0x86])?.isKeyframeStart == false, "the frame's header says that it is none")
        #expect(descriptor([0x08])?.isKeyframeStart == false)
    }

    @Test func `a truncated descriptor is refused`() {
        let full = [0xaa, 0x81, 0x23, 0x00, 0x45] + structure
        for length in 0..<full.count { #expect(descriptor(Array(full[..<length])) == nil, "\(length)") }
        #expect(descriptor(full) != nil)
        let flexible: [UInt8] = [0xf8, 0x81, 0x23, 0x20, 0x03, 0x04]
        for length in 0..<flexible.count { #expect(descriptor(Array(flexible[..<length])) == nil, "\(length)") }
        #expect(descriptor(flexible) != nil)
    }

    @Test(arguments: [true, false])
    func `picture id and TL0PICIDX are rewritten in place, in their own width`(isLong: Bool) throws {
        let payload: [UInt8] = isLong ? [0xa8, 0x81, 0x23, 0x40, 0x45, 0x99] : [0xa8, 0x23, 0x40, 0x45, 0x99]
        var packet = rtp(payload)
        let header = try value(RTPHeader(parsing: packet))
        let before = try value(VP9PayloadDescriptor(parsing: packet, header: header))
        PictureRewrite(before, pictureID: 0x7abc, tl0PictureIndex: 7)
            .apply(to: &packet, payload: header.payloadOffset..<header.payloadEnd)
        let bytes = Array(packet.bytes[header.payloadOffset..<header.payloadEnd])
        #expect(bytes == (isLong ? [0xa8, 0xfa, 0xbc, 0x40, 7, 0x99] : [0xa8, 0x3c, 0x40, 7, 0x99]))
    }

    @Test func `pictures get successive ids, and those of the lowest temporal layer successive TL0PICIDX`() throws {
        var (numbers, seen) = (PictureNumbers(), [(id: UInt16, base: UInt8)]())
        for (id, indices) in [(0x7ffe, 0x00), (0x0003, 0x40), (0x5000, 0x00)] as [(UInt16, UInt8)] {
            numbers.beginFrame()
            for _ in 0..<2 {
                var packet = rtp([0xa8, 0x80 | UInt8(id >> 8), UInt8(id & 0xff), indices, 0x99, 0x86])
                let header = try value(RTPHeader(parsing: packet))
                numbers.number(&packet, header: header, as: .vp9)
                let read = try value(VP9PayloadDescriptor(parsing: packet, header: header))
                seen.append((try value(read.pictureID), try value(read.tl0PictureIndex)))
            }
        }
        #expect(seen.map { $0.id &- seen[0].id } == [0, 0, 1, 1, 2, 2])
        #expect(seen.map { $0.base &- seen[0].base } == [0, 0, 0, 0, 1, 1])
    }
}

/// Splices of VP9.
@Suite struct VP9SpliceTests {
    private func packet(
        _ number: Int, epoch: Int = 0, timestamp: UInt32, pictureID: UInt16, tl0: UInt8, temporal: UInt8 = 0,
        isKeyframe: Bool = false, isNewest: Bool = true
    ) throws -> Splice.Packet {
        let buffer = rtp(
            [
                isKeyframe ? 0xac : 0xec, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff), temporal << 5, tl0,
                isKeyframe ? 0x82 : 0x86, 0,
            ])
        let header = try value(RTPHeader(parsing: buffer))
        return Splice.Packet(
            position: StreamPosition(epoch: epoch, number: number), timestamp: RTPTimestamp(timestamp),
            isNewest: isNewest, payload: try value(PayloadDescriptor(parsing: buffer, header: header, as: .vp9)))
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    private func rewrite(_ numbers: Splice.Numbers?) -> PictureRewrite? {
        guard case .picture(let rewrite)? = numbers?.patch else { return nil }
        return rewrite
    }

    private func splice() -> Splice {
        var splice = Splice(firstSequenceNumber: SequenceNumber(100))
        splice.begin(clockRate: 90000, clock: nil)
        return splice
    }

    @Test func `a picture that is left out leaves its picture id free, and no gap in the sequence numbers`() throws {
        var splice = splice()
        let first = try packet(0, timestamp: 0, pictureID: 10, tl0: 3, isKeyframe: true)
        #expect(splice.take(first, now: time(0))?.patch == nil)
        let omitted = try packet(1, timestamp: 3000, pictureID: 11, tl0: 3, temporal: 1)
        #expect(splice.leaveOutPicture(omitted) == nil)
        let next = splice.take(try packet(2, timestamp: 6000, pictureID: 12, tl0: 4), now: time(66))
        #expect(next?.sequenceNumber == SequenceNumber(101))
        #expect(rewrite(next)?.pictureID ?? 12 == 12 && rewrite(next)?.tl0PictureIndex ?? 4 == 4)
        // The rest of the frame, late.
        #expect(splice.hasLeftOut(omitted))
        let keyframe = splice.take(
            try packet(3, timestamp: 9000, pictureID: 13, tl0: 5, isKeyframe: true), now: time(99))
        #expect(rewrite(keyframe)?.pictureID ?? 13 == 13)
        #expect(splice.hasLeftOut(try packet(1, timestamp: 3000, pictureID: 11, tl0: 3, temporal: 1, isNewest: false)))
    }

    @Test func `a layer frame of the base layer goes on if another one of its picture was left out`() throws {
        var splice = splice()
        _ = splice.take(try packet(0, timestamp: 0, pictureID: 10, tl0: 3, isKeyframe: true), now: time(0))
        #expect(splice.leaveOutPicture(try packet(1, timestamp: 3000, pictureID: 11, tl0: 3, temporal: 1)) == nil)
        #expect(
            splice.take(try packet(3, timestamp: 6000, pictureID: 12, tl0: 4), now: time(66))?.sequenceNumber
                == SequenceNumber(102))
        let late = try packet(2, timestamp: 3000, pictureID: 11, tl0: 3, isNewest: false)
        let numbers = splice.take(late, now: time(70))
        #expect(numbers?.sequenceNumber == SequenceNumber(101) && numbers?.isEmpty == false)
        #expect(rewrite(numbers)?.pictureID == 11)
    }

    @Test func `another stream goes on with the picture ids and TL0PICIDX of the former one`() throws {
        var splice = splice()
        _ = splice.take(try packet(0, timestamp: 0, pictureID: 0x7fff, tl0: 255, isKeyframe: true), now: time(0))
        splice.begin(clockRate: 90000, clock: nil)
        let joined = splice.take(
            try packet(70, epoch: 1, timestamp: 500, pictureID: 40, tl0: 9, isKeyframe: true), now: time(100))
        #expect(rewrite(joined)?.pictureID == 0 && rewrite(joined)?.tl0PictureIndex == 0)
        let omitted = try packet(71, epoch: 1, timestamp: 3500, pictureID: 41, tl0: 9, temporal: 1)
        #expect(splice.leaveOutPicture(omitted) == nil)
        let next = splice.take(try packet(72, epoch: 1, timestamp: 6500, pictureID: 42, tl0: 10), now: time(166))
        #expect(rewrite(next)?.pictureID == 2 && rewrite(next)?.tl0PictureIndex == 1)
        #expect(next?.sequenceNumber == SequenceNumber(102))
    }
}
