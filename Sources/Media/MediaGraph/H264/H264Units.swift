/// A unit of H.264, without its start code.
package struct H264Unit: Hashable, Sendable {
    enum Kind: Sendable {
        case sequenceParameters
        case pictureParameters
        /// A slice of a keyframe.
        case keySlice
        /// A slice of another frame.
        case slice
        case other
    }

    let bytes: ArraySlice<UInt8>

    var kind: Kind {
        switch (bytes.first ?? 0) & 0x1f {
        case 1...4: .slice
        case 5: .keySlice
        case 7: .sequenceParameters
        case 8: .pictureParameters
        default: .other
        }
    }

    /// Whether an access unit in Annex B is one with which decoding can begin (IDR).
    package static func isKeyframe(_ frame: [UInt8]) -> Bool {
        units(of: frame, wholly: false).contains { $0.kind == .keySlice }
    }

    /// The units of an access unit in Annex B, in their order. Without `wholly`, the search ends at the first slice of a
    /// frame that is not a keyframe, whose bytes are not read.
    static func units(of frame: [UInt8], wholly: Bool = true) -> [H264Unit] {
        var units: [H264Unit] = []
        var begin: Int?
        var index = 0
        func end(_ begin: Int, _ end: Int) {
            var end = end
            // Zeros before the next start code do not belong to the unit.
            while end > begin, frame[end - 1] == 0 { end -= 1 }
            units.append(H264Unit(bytes: frame[begin..<end]))
        }
        while index + 2 < frame.count {
            if frame[index + 2] > 1 {
                index += 3
            } else if frame[index] == 0, frame[index + 1] == 0, frame[index + 2] == 1 {
                if let begin { end(begin, index) }
                begin = index + 3
                index += 3
                if !wholly, index < frame.count, (1...4).contains(frame[index] & 0x1f) {
                    units.append(H264Unit(bytes: frame[index...]))
                    return units
                }
            } else {
                index += 1
            }
        }
        if let begin, begin < frame.count { end(begin, frame.count) }
        return units
    }

    static func frame(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { [0, 0, 0, 1] + $0 } }
}

/// A slice of a keyframe whose `idr_pic_id` can be changed (ITU-T H.264, 7.3.3).
struct KeySlice: Sendable {
    let pictureID: Int
    private let reader: BitReader
    private let isArithmetic: Bool
    /// The bits before and behind the id, and where the content of the slice begins.
    private let (before, behind, content): (Int, Int, Int)

    /// Nil for a slice that cannot be read.
    init?(_ unit: H264Unit, _ sequences: [Int: SequenceParameters], _ pictures: [Int: PictureParameters]) {
        var reader = BitReader(unit: unit.bytes)
        _ = (reader.bits(8), reader.unsigned())
        // Intra coded, of this slice or of all slices of the frame.
        guard [2, 7].contains(reader.unsigned()), let picture = pictures[reader.unsigned()],
            let sequence = sequences[picture.sequence]
        else { return nil }
        if sequence.hasSeparatePlanes { _ = reader.bits(2) }
        _ = reader.bits(sequence.frameNumberBits)
        var isField = false
        if !sequence.hasFramesOnly {
            isField = reader.flag()
            if isField { _ = reader.bits(1) }
        }
        before = reader.position
        pictureID = reader.unsigned()
        behind = reader.position
        if sequence.orderType == 0 {
            _ = reader.bits(sequence.orderBits)
            if picture.hasFieldOrder, !isField { _ = reader.signed() }
        } else if sequence.orderType == 1, !sequence.orderDeltaIsZero {
            _ = reader.signed()
            if picture.hasFieldOrder, !isField { _ = reader.signed() }
        }
        if picture.hasRedundancy { _ = reader.unsigned() }
        _ = (reader.bits(2), reader.signed())
        if picture.hasDeblocking, reader.unsigned() != 1 { _ = (reader.signed(), reader.signed()) }
        content = reader.position
        isArithmetic = picture.isArithmetic
        guard !reader.isBeyond, pictureID < 65_536 else { return nil }
        self.reader = reader
    }

    /// The unit with another id. Nil without content.
    func unit(withID id: Int) -> [UInt8]? {
        guard let stop = reader.stopBit, stop >= content else { return nil }
        var writer = BitWriter()
        writer.append(0..<before, of: reader)
        writer.append(unsigned: id)
        if isArithmetic {
            writer.append(behind..<content, of: reader)
            // cabac_alignment_one_bit
            writer.align(with: true)
            writer.append((content + 7) / 8 * 8..<reader.bytes.count * 8, of: reader)
        } else {
            writer.append(behind..<stop + 1, of: reader)
            writer.align(with: false)
        }
        return writer.unit
    }
}
