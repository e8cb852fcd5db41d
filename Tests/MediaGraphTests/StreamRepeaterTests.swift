import MediaGraph
import Testing

/// A repeater that a condition may change.
private final class Repeated {
    private var repeater: WholeFrameRepeater

    init(_ codec: WholeFrameRepeater.Codec) { repeater = WholeFrameRepeater(codec) }

    func interrupt() { repeater.interrupt() }
    func pass(_ frame: [UInt8]) -> Passing { repeater.pass(frame) }
    func show(slate frame: [UInt8]) -> Bool { repeater.show(slate: frame) }
    func standIn() -> [UInt8]? { repeater.standIn() }
    var hasSlate: Bool { repeater.hasSlate }
}

/// Streams of codecs whose keyframes repeat as they are.
@Suite struct StreamRepeaterTests {
    /// The header of a keyframe of VP8 (RFC 6386, 9.1), 16x16, and a byte that tells it apart.
    private static func vp8(_ mark: UInt8, isKey: Bool = true) -> [UInt8] {
        isKey ? [0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, mark] : [0x11, 0, 0, mark]
    }

    /// A frame of H.265 with parameter sets before a slice of this type.
    private static func h265(_ kind: UInt8, _ mark: UInt8) -> [UInt8] {
        let sets: [UInt8] = [32, 33, 34].flatMap { [0, 0, 0, 1, $0 << 1, 1, 7] }
        return (kind >= 16 ? sets : []) + [0, 0, 1, kind << 1, 1, 0x80, mark] + [0, 0, 1, kind << 1, 1, 0x40, mark]
    }

    @Test func `VP8 repeats its last keyframe, and goes on with the next one`() {
        let repeater = Repeated(.vp8)
        repeater.interrupt()
        #expect(repeater.standIn() == nil)
        #expect(repeater.pass(Self.vp8(0, isKey: false)) == .dropped)
        #expect(repeater.pass(Self.vp8(1)) == .unchanged)
        #expect(repeater.pass(Self.vp8(2, isKey: false)) == .unchanged)
        #expect(repeater.standIn() == Self.vp8(1) && repeater.standIn() == Self.vp8(1))
        #expect(repeater.pass(Self.vp8(3, isKey: false)) == .dropped, "it depends on frames that were not sent")
        #expect(repeater.pass(Self.vp8(4)) == .unchanged)
        #expect(repeater.pass(Self.vp8(5, isKey: false)) == .unchanged)
    }

    @Test func `a slate shows up to the next keyframe of the source`() {
        let repeater = Repeated(.vp8)
        #expect(!repeater.show(slate: Self.vp8(0, isKey: false)) && !repeater.hasSlate)
        #expect(repeater.show(slate: Self.vp8(9)))
        #expect(repeater.standIn() == Self.vp8(9))
        #expect(repeater.pass(Self.vp8(1)) == .unchanged)
        #expect(!repeater.hasSlate && repeater.standIn() == Self.vp8(1))
    }

    @Test func `a keyframe of H.265 whose followers need earlier frames has a broken link behind a gap`() {
        let repeater = Repeated(.h265)
        repeater.interrupt()
        #expect(repeater.pass(Self.h265(1, 0)) == .dropped)
        #expect(repeater.pass(Self.h265(21, 1)) == .changed(Self.h265(16, 1)))
        #expect(repeater.pass(Self.h265(21, 2)) == .unchanged, "without a gap")
        #expect(repeater.standIn() == Self.h265(16, 2))
        #expect(repeater.pass(Self.h265(9, 3)) == .dropped)
        #expect(repeater.pass(Self.h265(19, 4)) == .unchanged)
        #expect(repeater.standIn() == Self.h265(19, 4))
    }
}
