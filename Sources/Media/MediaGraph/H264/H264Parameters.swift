/// The parts of a sequence parameter set that decide how its slices are read (ITU-T H.264, 7.3.2.1.1).
package struct SequenceParameters: Hashable, Sendable {
    package let id: Int
    /// `profile_idc`
    package let profile: Int
    /// Whether every decoder of the baseline profile reads the stream, if it has none of the tools that only that profile
    /// has, which no camera uses.
    package let isBaseline: Bool
    /// `level_idc`: ten times the level (A.3.1).
    package let level: Int
    let hasSeparatePlanes: Bool
    let frameNumberBits: Int
    /// `pic_order_cnt_type`
    let orderType: Int
    let orderBits: Int
    let orderDeltaIsZero: Bool
    let hasFramesOnly: Bool
    /// How many frames at most are decoded before one that is displayed before them. Of a set that does not state it, the
    /// number of its reference frames.
    package let reorderedFrames: Int
    /// In pixels, cropped.
    package let width: Int
    package let height: Int

    /// Nil for a set that is cut short or out of range. `unit` begins with its header byte.
    package init?(unit: some Sequence<UInt8>) {
        var reader = BitReader(unit: unit)
        _ = reader.bits(8)
        profile = reader.bits(8)
        // constraint_set0_flag
        isBaseline = reader.flag() || profile == 66
        _ = reader.bits(7)
        level = reader.bits(8)
        id = reader.unsigned()
        var (separate, chroma) = (false, 1)
        if Self.profilesWithChroma.contains(profile) {
            chroma = reader.unsigned()
            if chroma == 3 { separate = reader.flag() }
            _ = (reader.unsigned(), reader.unsigned(), reader.bits(1))
            if reader.flag() {
                for list in 0..<(chroma == 3 ? 12 : 8) where reader.flag() {
                    Self.skipScalingList(of: list < 6 ? 16 : 64, &reader)
                }
            }
        }
        hasSeparatePlanes = separate
        frameNumberBits = reader.unsigned() + 4
        orderType = reader.unsigned()
        var order = (bits: 0, deltaIsZero: false)
        if orderType == 0 {
            order.bits = reader.unsigned() + 4
        } else if orderType == 1 {
            order.deltaIsZero = reader.flag()
            _ = (reader.signed(), reader.signed())
            for _ in 0..<min(reader.unsigned(), 255) { _ = reader.signed() }
        }
        (orderBits, orderDeltaIsZero) = order
        let references = reader.unsigned()
        _ = reader.bits(1)
        let macroblocks = (reader.unsigned() + 1, reader.unsigned() + 1)
        hasFramesOnly = reader.flag()
        if !hasFramesOnly { _ = reader.bits(1) }
        _ = reader.bits(1)
        let crop = reader.flag() ? (0..<4).map { _ in reader.unsigned() } : [0, 0, 0, 0]
        // Table 6-1. Fields have every second row.
        let unit = (chroma == 1 || chroma == 2 ? 2 : 1, (chroma == 1 ? 2 : 1) * (hasFramesOnly ? 1 : 2))
        width = 16 * min(macroblocks.0, 4096) - unit.0 * min(crop[0] + crop[1], 16_384)
        height = 16 * min(macroblocks.1, 4096) * (hasFramesOnly ? 1 : 2) - unit.1 * min(crop[2] + crop[3], 16_384)
        guard !reader.isBeyond, id < 32, frameNumberBits <= 16, orderType <= 2, orderBits <= 16 else { return nil }
        let stated = reader.flag() ? Self.reorderedFrames(&reader) : nil
        let reordered = reader.isBeyond ? nil : stated
        reorderedFrames = isBaseline || orderType == 2 ? 0 : min(reordered ?? max(references, 1), 16)
    }

    /// The first set of an access unit in Annex B. Nil without one that can be read.
    package init?(frame: [UInt8]) {
        let unit = H264Unit.units(of: frame, wholly: false).first { $0.kind == .sequenceParameters }
        guard let unit else { return nil }
        self.init(unit: unit.bytes)
    }

    /// Whether frames are surely displayed in the order in which they are decoded.
    package var isInDisplayOrder: Bool { reorderedFrames == 0 }

    /// The name of the profile, such as `High`.
    package var profileName: String {
        let names = [66: "Baseline", 77: "Main", 88: "Extended", 100: "High", 110: "High 10", 122: "High 4:2:2"]
        return names[profile] ?? "\(profile)"
    }

    /// The highest level that receivers in rooms are expected to decode.
    private static let highestLevel = 52

    /// Why receivers in rooms may not decode the stream. Nil if they do.
    package var obstacleForPeers: String? {
        if !isBaseline {
            return "its profile is \(profileName), and receivers in rooms need only decode constrained baseline"
        }
        guard level > Self.highestLevel else { return nil }
        return "its level is \(level / 10).\(level % 10), and receivers in rooms decode up to 5.2"
    }

    private static let profilesWithChroma: Set = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]

    private static func skipScalingList(of size: Int, _ reader: inout BitReader) {
        var (last, next) = (8, 8)
        for _ in 0..<size {
            if next != 0 { next = (last + reader.signed() + 256) % 256 }
            if next != 0 { last = next }
        }
    }

    /// `max_num_reorder_frames` of the usability information (E.1.1). Nil if it is not there.
    private static func reorderedFrames(_ reader: inout BitReader) -> Int? {
        if reader.flag(), reader.bits(8) == 255 { _ = reader.bits(32) }
        if reader.flag() { _ = reader.bits(1) }
        if reader.flag() {
            _ = reader.bits(4)
            if reader.flag() { _ = reader.bits(24) }
        }
        if reader.flag() { _ = (reader.unsigned(), reader.unsigned()) }
        if reader.flag() { _ = (reader.bits(32), reader.bits(32), reader.bits(1)) }
        let hasUnitRate = reader.flag()
        if hasUnitRate { skipRate(&reader) }
        let hasSliceRate = reader.flag()
        if hasSliceRate { skipRate(&reader) }
        if hasUnitRate || hasSliceRate { _ = reader.bits(1) }
        _ = reader.bits(1)
        guard reader.flag() else { return nil }
        _ = (reader.bits(1), reader.unsigned(), reader.unsigned(), reader.unsigned(), reader.unsigned())
        return reader.unsigned()
    }

    /// `hrd_parameters` (E.1.2)
    private static func skipRate(_ reader: inout BitReader) {
        let count = reader.unsigned() + 1
        _ = reader.bits(8)
        for _ in 0..<min(count, 32) { _ = (reader.unsigned(), reader.unsigned(), reader.bits(1)) }
        _ = reader.bits(20)
    }
}

/// The parts of a picture parameter set that decide how its slices are read (ITU-T H.264, 7.3.2.2).
struct PictureParameters: Hashable, Sendable {
    let id: Int
    let sequence: Int
    /// Whether slices are coded arithmetically (CABAC), on whole bytes.
    let isArithmetic: Bool
    let hasFieldOrder: Bool
    let hasDeblocking: Bool
    let hasRedundancy: Bool

    /// Nil for a set that is cut short, and with slice groups, which no camera uses.
    init?(unit: some Sequence<UInt8>) {
        var reader = BitReader(unit: unit)
        _ = reader.bits(8)
        (id, sequence) = (reader.unsigned(), reader.unsigned())
        (isArithmetic, hasFieldOrder) = (reader.flag(), reader.flag())
        guard reader.unsigned() == 0 else { return nil }
        _ = (reader.unsigned(), reader.unsigned(), reader.bits(3))
        _ = (reader.signed(), reader.signed(), reader.signed())
        hasDeblocking = reader.flag()
        _ = reader.bits(1)
        hasRedundancy = reader.flag()
        guard !reader.isBeyond, id < 256, sequence < 32 else { return nil }
    }
}
