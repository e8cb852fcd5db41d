/// Keeps a passing H.264 stream valid while its source is away: repeats the last keyframe, or a slate that was encoded once.
///
/// A decoder accepts any number of equal keyframes if `idr_pic_id` changes from each to the next (ITU-T H.264, 7.4.3), so
/// the id is rewritten. Nothing is encoded or decoded. All frames are access units in Annex B.
///
/// A value without a clock: the caller decides when a frame is repeated, and its timestamp.
public struct KeyframeRepeater: StreamRepeater {
    /// A keyframe and its parameter sets.
    private struct Picture {
        /// The size of a parameter set that no camera exceeds, in bytes. There may be 288 of them.
        static let largestSet = 4096

        var sequences: [Int: [UInt8]] = [:]
        var pictures: [Int: [UInt8]] = [:]
        var slices: [KeySlice] = []
        /// Its frame for each id that was needed.
        var frames: [Int: [UInt8]] = [:]

        var parameters: [[UInt8]] {
            (sequences.sorted { $0.key < $1.key } + pictures.sorted { $0.key < $1.key }).map(\.value)
        }

        /// Nil without a keyframe.
        mutating func frame(withID id: Int) -> [UInt8]? {
            if let frame = frames[id] { return frame }
            let units = slices.compactMap { $0.unit(withID: id) }
            guard !units.isEmpty, units.count == slices.count else { return nil }
            frames[id] = H264Unit.frame(parameters + units)
            return frames[id]
        }

        mutating func take(_ units: [H264Unit]) {
            for unit in units where unit.bytes.count <= Self.largestSet {
                if unit.kind == .sequenceParameters, let set = SequenceParameters(unit: unit.bytes) {
                    sequences[set.id] = Array(unit.bytes)
                } else if unit.kind == .pictureParameters, let set = PictureParameters(unit: unit.bytes) {
                    pictures[set.id] = Array(unit.bytes)
                }
            }
            let keySlices = units.filter { $0.kind == .keySlice }
            guard !keySlices.isEmpty else { return }
            let sequences = sequences.compactMapValues(SequenceParameters.init(unit:))
            let pictures = pictures.compactMapValues(PictureParameters.init(unit:))
            slices = keySlices.compactMap { KeySlice($0, sequences, pictures) }
            // One that cannot be read is not repeated.
            if slices.count < keySlices.count { slices = [] }
            frames = [:]
        }
    }

    /// The parameter sets of the source.
    private var present = Picture()
    /// Its last keyframe.
    private var last = Picture()
    private var slate: Picture?
    /// The id of the last frame that was sent, if that was a keyframe.
    private var sentID: Int?
    /// Whether receivers lack frames, so that nothing but a keyframe can follow.
    private var needsKeyframe = false

    /// A repeater that has seen no keyframe.
    public init() {}

    public var hasKeyframe: Bool { !last.slices.isEmpty }

    public var hasSlate: Bool { slate != nil }

    public mutating func interrupt() { needsKeyframe = true }

    public mutating func restart() {
        present = Picture()
        needsKeyframe = true
    }

    public mutating func pass(_ frame: [UInt8]) -> Passing {
        let units = H264Unit.units(of: frame, wholly: false)
        guard units.contains(where: { $0.kind == .keySlice }) else {
            present.take(units)
            if needsKeyframe { return .dropped }
            if units.contains(where: { $0.kind == .slice }) { sentID = nil }
            return .unchanged
        }
        present.take(units)
        last = present
        slate = nil
        let id = last.slices.first?.pictureID
        let needsParameters =
            needsKeyframe
            && !(units.contains { $0.kind == .sequenceParameters } && units.contains { $0.kind == .pictureParameters })
        let isRepeatedID = id != nil && id == sentID
        needsKeyframe = false
        sentID = id
        if isRepeatedID, let id {
            let other = Self.id(after: id)
            guard let frame = last.frame(withID: other) else { return .unchanged }
            sentID = other
            return .changed(frame)
        }
        return needsParameters ? .changed(H264Unit.frame(last.parameters) + frame) : .unchanged
    }

    /// `frame` needs its parameter sets.
    public mutating func show(slate frame: [UInt8]) -> Bool {
        var picture = Picture()
        picture.take(H264Unit.units(of: frame))
        guard !picture.slices.isEmpty, !picture.parameters.isEmpty else { return false }
        slate = picture
        return true
    }

    public mutating func standIn() -> [UInt8]? {
        let id = Self.id(after: sentID)
        guard let frame = slate != nil ? slate?.frame(withID: id) : last.frame(withID: id) else { return nil }
        sentID = id
        needsKeyframe = true
        return frame
    }

    /// An id that differs from the one before.
    private static func id(after id: Int?) -> Int { id == 1 ? 2 : 1 }
}
