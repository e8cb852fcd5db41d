/// Keeps a passing stream of encoded video valid while its source is away: repeats the last keyframe, or a slate that was
/// encoded once. Nothing is encoded or decoded.
///
/// A value without a clock: the caller decides when a frame is repeated, and its timestamp.
public protocol StreamRepeater: Sendable {
    /// Whether there is a keyframe to repeat.
    var hasKeyframe: Bool { get }
    /// Whether a slate shows instead of the last keyframe.
    var hasSlate: Bool { get }
    /// Frames of the source were lost or not sent: the next ones are dropped up to a keyframe.
    mutating func interrupt()
    /// Another source begins: its frames do not use parameter sets of the one before, whose keyframe repeats until then.
    mutating func restart()
    /// Takes a frame of the source, and returns what to send for it.
    mutating func pass(_ frame: [UInt8]) -> Passing
    /// Shows a slate instead of the last keyframe from the next stand-in on, until the source returns. `frame` is one
    /// keyframe. Returns false, and changes nothing, if it is not.
    mutating func show(slate frame: [UInt8]) -> Bool
    /// The frame that stands in for one of the source now. Nil before the first keyframe, unless there is a slate.
    mutating func standIn() -> [UInt8]?
}

extension StreamRepeater {
    public mutating func restart() { interrupt() }
}

/// The bytes to send for a frame of a source.
public enum Passing: Sendable, Equatable {
    /// The unchanged frame.
    case unchanged
    /// Other bytes: the frame with parameter sets before it, or with changed headers.
    case changed([UInt8])
    /// Nothing. It depends on frames that the receivers did not get.
    case dropped
}

extension Encoding {
    /// The repeater of a passing stream. Nil for raw media, for audio, and for video whose frames are all keyframes.
    package var repeater: (any StreamRepeater)? {
        switch name {
        case "h264": KeyframeRepeater()
        case "vp8": WholeFrameRepeater(.vp8)
        case "h265": WholeFrameRepeater(.h265)
        default: nil
        }
    }
}

/// Repeats keyframes of codecs whose decoders start over at each of them, so that the same bytes are valid any number of
/// times: VP8, and H.265 in Annex B with its parameter sets before each keyframe.
public struct WholeFrameRepeater: StreamRepeater {
    /// The codecs whose keyframes can be repeated unchanged.
    public enum Codec: Sendable {
        /// VP8 (RFC 6386).
        case vp8
        /// H.265 in Annex B form.
        case h265
    }

    private let codec: Codec
    private var last: [UInt8]?
    private var slate: [UInt8]?
    /// Whether receivers lack frames, so that nothing but a keyframe can follow.
    private var needsKeyframe = false

    /// A repeater that has seen no keyframe.
    public init(_ codec: Codec) { self.codec = codec }

    public var hasKeyframe: Bool { last != nil }
    public var hasSlate: Bool { slate != nil }

    public mutating func interrupt() { needsKeyframe = true }

    public mutating func pass(_ frame: [UInt8]) -> Passing {
        guard isKeyframe(frame) else { return needsKeyframe ? .dropped : .unchanged }
        let alone = codec == .h265 ? Self.broken(frame) : frame
        (last, slate) = (alone, nil)
        defer { needsKeyframe = false }
        return needsKeyframe && alone != frame ? .changed(alone) : .unchanged
    }

    public mutating func show(slate frame: [UInt8]) -> Bool {
        guard isKeyframe(frame) else { return false }
        slate = frame
        return true
    }

    public mutating func standIn() -> [UInt8]? {
        guard let frame = slate ?? last else { return nil }
        needsKeyframe = true
        return frame
    }

    private func isKeyframe(_ frame: [UInt8]) -> Bool {
        switch codec {
        case .vp8: EncodedHeader.isKeyframe(frame.span.bytes, encoding: "vp8")
        case .h265: Self.isKeyframe(h265: frame)
        }
    }

    // MARK: H.265

    /// Whether decoding can begin with a frame of H.265 in Annex B.
    public static func isKeyframe(h265 frame: [UInt8]) -> Bool {
        firstSlice(of: frame).map { (16...21).contains($0.kind) } ?? false
    }

    /// The position and the `nal_unit_type` of each slice (ITU-T H.265, 7.3.1.2 and table 7-1).
    private static func slices(of frame: [UInt8], onlyFirst: Bool = false) -> [(position: Int, kind: UInt8)] {
        var found: [(position: Int, kind: UInt8)] = []
        var index = 0
        while index + 3 < frame.count {
            if frame[index + 2] > 1 {
                index += 3
            } else if frame[index] == 0, frame[index + 1] == 0, frame[index + 2] == 1 {
                let kind = frame[index + 3] >> 1 & 0x3f
                if kind < 32 { found.append((index + 3, kind)) }
                if onlyFirst, !found.isEmpty { break }
                index += 4
            } else {
                index += 1
            }
        }
        return found
    }

    private static func firstSlice(of frame: [UInt8]) -> (position: Int, kind: UInt8)? {
        slices(of: frame, onlyFirst: true).first
    }

    /// The frame as one behind a gap: a clean random access (CRA, type 21) becomes a broken link (BLA, type 16), so that
    /// decoders drop the frames that follow it and refer to frames before it.
    private static func broken(_ frame: [UInt8]) -> [UInt8] {
        guard firstSlice(of: frame)?.kind == 21 else { return frame }
        var frame = frame
        for slice in slices(of: frame) where slice.kind == 21 {
            frame[slice.position] = frame[slice.position] & 0x81 | 16 << 1
        }
        return frame
    }
}
