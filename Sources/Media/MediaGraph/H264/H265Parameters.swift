/// The part of H.265's sequence parameter set that decides about the order of frames (ITU-T H.265, 7.3.2.2).
struct H265Parameters {
    /// How many frames at most are decoded before one that is displayed before them (`sps_max_num_reorder_pics`).
    let reorderedFrames: Int

    /// The first set of an access unit in Annex B. Nil without one that can be read.
    init?(frame: [UInt8]) {
        guard let unit = H264Unit.units(of: frame).first(where: { ($0.bytes.first ?? 0) >> 1 & 0x3f == 33 }) else {
            return nil
        }
        var reader = BitReader(unit: unit.bytes)
        // The header of two bytes, and the id of the video parameter set.
        _ = reader.bits(20)
        let layers = reader.bits(3)
        _ = reader.bits(1)
        Self.skipProfile(ofLayers: layers, &reader)
        _ = reader.unsigned()
        if reader.unsigned() == 3 { _ = reader.bits(1) }
        _ = (reader.unsigned(), reader.unsigned())
        if reader.flag() { for _ in 0..<4 { _ = reader.unsigned() } }
        _ = (reader.unsigned(), reader.unsigned(), reader.unsigned())
        // The last layer is that of the whole stream.
        var reordered = 0
        for _ in 0...(reader.flag() ? layers : 0) {
            _ = reader.unsigned()
            reordered = reader.unsigned()
            _ = reader.unsigned()
        }
        guard !reader.isBeyond, reordered <= 16 else { return nil }
        reorderedFrames = reordered
    }

    /// `profile_tier_level` (7.3.3)
    private static func skipProfile(ofLayers layers: Int, _ reader: inout BitReader) {
        _ = (reader.bits(48), reader.bits(48))
        guard layers > 0 else { return }
        let hasParts = (0..<8).map { _ in (reader.flag(), reader.flag()) }
        for (hasProfile, hasLevel) in hasParts.prefix(layers) {
            if hasProfile { _ = (reader.bits(44), reader.bits(44)) }
            if hasLevel { _ = reader.bits(8) }
        }
    }
}

extension Encoding {
    /// How many frames at most of a stream are decoded before one that is displayed before them. Nil for a frame without
    /// parameter sets.
    package func reorderedFrames(asOf keyframe: [UInt8]) -> Int? {
        switch name {
        case "h264": SequenceParameters(frame: keyframe)?.reorderedFrames
        case "h265": H265Parameters(frame: keyframe)?.reorderedFrames
        default: nil
        }
    }
}
