import TestSupport
import Testing

@testable import MediaGraph

/// A stream of H.264 whose every field the test knows.
private struct MadeUpStream {
    var isArithmetic = false
    var orderType = 0
    var frameNumberBits = 7
    var slices = 1
    var setID = 0

    private func unit(_ header: UInt8, _ write: (inout BitWriter) -> Void) -> [UInt8] {
        var writer = BitWriter()
        writer.append(Int(header), bits: 8)
        write(&writer)
        return writer.unit
    }

    /// ITU-T H.264, 7.3.2.1.1
    var sequence: [UInt8] {
        unit(0x67) { writer in
            writer.append(77, bits: 8)
            writer.append(31, bits: 16)
            writer.append(unsigned: setID)
            writer.append(unsigned: frameNumberBits - 4)
            writer.append(unsigned: orderType)
            if orderType == 0 { writer.append(unsigned: 2) }
            for value in [1, 39, 29] {
                writer.append(unsigned: value)
                if value == 1 { writer.append(false) }
            }
            writer.append(true)
            for flag in [true, false, false] { writer.append(flag) }
            writer.append(true)
            writer.align(with: false)
        }
    }

    /// ITU-T H.264, 7.3.2.2
    var picture: [UInt8] {
        unit(0x68) { writer in
            writer.append(unsigned: setID)
            writer.append(unsigned: setID)
            writer.append(isArithmetic)
            writer.append(false)
            for _ in 0..<3 { writer.append(unsigned: 0) }
            writer.append(0, bits: 3)
            for _ in 0..<3 { writer.append(unsigned: 0) }
            for flag in [true, false, false] { writer.append(flag) }
            writer.append(true)
            writer.align(with: false)
        }
    }

    /// A slice of a keyframe with content of random bits, many of them zeros.
    func slice(_ index: Int, id: Int, _ content: [UInt8]) -> [UInt8] {
        unit(0x65) { writer in
            writer.append(unsigned: index)
            writer.append(unsigned: 7)
            writer.append(unsigned: setID)
            writer.append(0, bits: frameNumberBits)
            writer.append(unsigned: id)
            if orderType == 0 { writer.append(0, bits: 6) }
            writer.append(0, bits: 2)
            writer.append(unsigned: 4)
            writer.append(unsigned: 0)
            writer.append(unsigned: 1)
            writer.append(unsigned: 2)
            if isArithmetic { writer.align(with: true) }
            for byte in content { writer.append(Int(byte), bits: 8) }
            writer.append(true)
            writer.align(with: false)
        }
    }

    func keyframe(id: Int, _ content: [UInt8] = [1, 2, 0, 0, 0, 0, 1, 3], withSets: Bool = true) -> [UInt8] {
        H264Unit.frame((withSets ? [sequence, picture] : []) + (0..<slices).map { slice($0, id: id, content) })
    }

    var otherFrame: [UInt8] { H264Unit.frame([[0x41, 0x9a, 0x24, 0x6c, 0, 0, 3, 1, 0x80]]) }

    /// The ids of the slices of a keyframe.
    func ids(_ frame: [UInt8]) -> [Int] {
        guard let sequence = SequenceParameters(unit: sequence), let picture = PictureParameters(unit: picture) else {
            return []
        }
        return H264Unit.units(of: frame).filter { $0.kind == .keySlice }.compactMap {
            KeySlice($0, [sequence.id: sequence], [picture.id: picture])?.pictureID
        }
    }
}

/// A repeater that expectations can call.
private final class Repeated {
    private var repeater = KeyframeRepeater()

    func pass(_ frame: [UInt8]) -> Passing { repeater.pass(frame) }
    func standIn() -> [UInt8]? { repeater.standIn() }
    func show(slate frame: [UInt8]) -> Bool { repeater.show(slate: frame) }
    func interrupt() { repeater.interrupt() }
    var hasSlate: Bool { repeater.hasSlate }
}

@Suite struct KeyframeRepeaterTests {
    private static let streams = [true, false].flatMap { isArithmetic in
        [0, 2].flatMap { order in
            [4, 7, 16].map { MadeUpStream(isArithmetic: isArithmetic, orderType: order, frameNumberBits: $0) }
        }
    }

    @Test func `parameter sets of another source, and huge ones, are not kept`() throws {
        let (one, other) = (MadeUpStream(setID: 0), MadeUpStream(setID: 1))
        var repeater = KeyframeRepeater()
        _ = repeater.pass(one.keyframe(id: 1))
        let huge = other.picture + [UInt8](repeating: 0x55, count: 5000)
        _ = repeater.pass(H264Unit.frame([huge, one.sequence, one.picture, one.slice(0, id: 2, [1, 2])]))
        let small = repeater.standIn()
        #expect(try #require(small).count < 500)
        repeater.restart()
        let former = repeater.standIn()
        #expect(former != nil, "the last keyframe goes on")
        _ = repeater.pass(other.keyframe(id: 1))
        let frame = repeater.standIn()
        let sets = H264Unit.units(of: try #require(frame)).filter { $0.kind == .sequenceParameters }
        #expect(sets.map { Array($0.bytes) } == [other.sequence])
    }

    @Test("A slice with another id has the same content, bit by bit, and no start code inside", arguments: 0..<12)
    func rewriting(of index: Int) throws {
        let stream = Self.streams[index]
        var random = Seeded(UInt64(index))
        for _ in 0..<200 {
            let content = (0..<Int.random(in: 1...60, using: &random)).map { _ in
                Bool.random(using: &random) ? 0 : UInt8.random(in: 0...3, using: &random)
            }
            let (id, other) = (Int.random(in: 0...40, using: &random), Int.random(in: 0...40, using: &random))
            let frame = stream.keyframe(id: id, content)
            let units = H264Unit.units(of: frame)
            let sequence = try #require(SequenceParameters(unit: units[0].bytes))
            let picture = try #require(PictureParameters(unit: units[1].bytes))
            let slice = try #require(KeySlice(units[2], [0: sequence], [0: picture]))
            #expect(slice.pictureID == id)
            let rewritten = try #require(slice.unit(withID: other))
            // The same as if the encoder had chosen this id.
            #expect(rewritten == stream.slice(0, id: other, content))
            #expect(H264Unit.units(of: H264Unit.frame([rewritten])).count == 1)
        }
    }

    @Test("No two successive keyframes have the same id, whatever the source sends and however often it is lost")
    func ids() throws {
        for seed in 0..<UInt64(300) {
            var random = Seeded(seed)
            let stream = MadeUpStream(isArithmetic: seed % 2 == 0, slices: Int(seed % 3) + 1)
            let repeater = Repeated()
            var sent: [[Int]] = []
            var (isAway, hasSets) = (false, false)
            for _ in 0..<60 {
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    guard let frame = repeater.standIn() else { continue }
                    isAway = true
                    sent.append(stream.ids(frame))
                case 1:
                    let frame = stream.keyframe(
                        id: Int.random(in: 0...3, using: &random), withSets: !hasSets || Bool.random(using: &random)
                    )
                    hasSets = true
                    let passing = repeater.pass(frame)
                    let bytes = if case .changed(let bytes) = passing { bytes } else { frame }
                    #expect(passing != .dropped)
                    // A decoder needs the sets of the source again after those of a slate.
                    if isAway {
                        #expect(
                            H264Unit.units(of: bytes).prefix(2).map(\.kind) == [
                                .sequenceParameters, .pictureParameters,
                            ])
                    }
                    isAway = false
                    sent.append(stream.ids(bytes))
                default:
                    let passing = repeater.pass(stream.otherFrame)
                    #expect(passing == (isAway ? .dropped : .unchanged))
                    if !isAway { sent.append([]) }
                }
            }
            for (one, next) in zip(sent, sent.dropFirst()) where !one.isEmpty && !next.isEmpty {
                #expect(Set(one).count == 1 && Set(next).count == 1, "seed \(seed)")
                #expect(one != next, "seed \(seed)")
            }
        }
    }

    @Test("A stand-in is the last keyframe with its parameter sets; frames after it are dropped up to a keyframe")
    func standIn() throws {
        let stream = MadeUpStream()
        let repeater = Repeated()
        #expect(repeater.standIn() == nil)
        #expect(repeater.pass(stream.keyframe(id: 0, [9, 9])) == .unchanged)
        #expect(repeater.pass(stream.otherFrame) == .unchanged)
        #expect(repeater.standIn() == stream.keyframe(id: 1, [9, 9]))
        #expect(repeater.standIn() == stream.keyframe(id: 2, [9, 9]))
        #expect(repeater.standIn() == stream.keyframe(id: 1, [9, 9]))
        #expect(repeater.pass(stream.otherFrame) == .dropped)
        // Sets that the source sent once are put before its first keyframe.
        let next = stream.keyframe(id: 0, [7], withSets: false)
        #expect(repeater.pass(next) == .changed(stream.keyframe(id: 0, [7])))
        #expect(repeater.pass(stream.otherFrame) == .unchanged)
        #expect(repeater.pass(next) == .unchanged)
    }

    @Test("After a gap, frames are dropped up to a keyframe, whose parameter sets may come before it")
    func interruption() {
        let stream = MadeUpStream()
        let repeater = Repeated()
        repeater.interrupt()
        #expect(repeater.pass(stream.otherFrame) == .dropped)
        #expect(repeater.pass(H264Unit.frame([stream.sequence, stream.picture])) == .dropped)
        let frame = stream.keyframe(id: 0, withSets: false)
        #expect(repeater.pass(frame) == .changed(stream.keyframe(id: 0)))
        #expect(repeater.pass(stream.otherFrame) == .unchanged)
        repeater.interrupt()
        #expect(repeater.pass(stream.otherFrame) == .dropped)
        // Frames that were not sent separate the two.
        #expect(repeater.pass(stream.keyframe(id: 0)) == .unchanged)
    }

    @Test("Another source's parameter sets take the place of the former ones")
    func newSets() throws {
        let (stream, other) = (MadeUpStream(), MadeUpStream(isArithmetic: true, frameNumberBits: 9))
        let repeater = Repeated()
        _ = repeater.pass(stream.keyframe(id: 0))
        _ = repeater.standIn()
        #expect(repeater.pass(other.keyframe(id: 1)) == .changed(other.keyframe(id: 2)))
        #expect(repeater.standIn() == other.keyframe(id: 1))
    }

    @Test("A slate shows until the source returns, and is then forgotten")
    func slate() throws {
        let (stream, drawn) = (MadeUpStream(), MadeUpStream(orderType: 2, setID: 3))
        let repeater = Repeated()
        #expect(!repeater.show(slate: stream.otherFrame))
        #expect(!repeater.show(slate: drawn.keyframe(id: 0, withSets: false)))
        _ = repeater.pass(stream.keyframe(id: 1, [5]))
        #expect(!repeater.hasSlate)
        #expect(repeater.show(slate: drawn.keyframe(id: 0)))
        #expect(repeater.hasSlate)
        #expect(repeater.standIn() == drawn.keyframe(id: 2))
        #expect(repeater.standIn() == drawn.keyframe(id: 1))
        #expect(repeater.pass(stream.otherFrame) == .dropped)
        #expect(repeater.pass(stream.keyframe(id: 0, [6], withSets: false)) == .changed(stream.keyframe(id: 0, [6])))
        #expect(repeater.standIn() == stream.keyframe(id: 1, [6]))
    }

    @Test("Damaged frames are passed on, never repeated, and end nothing")
    func damage() {
        let stream = MadeUpStream(slices: 2)
        for seed in 0..<UInt64(3000) {
            var random = Seeded(seed)
            let repeater = Repeated()
            var frame = stream.keyframe(id: 1)
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            _ = repeater.pass(Array(frame.prefix(Int.random(in: 0...frame.count, using: &random))))
            _ = repeater.standIn()
            _ = repeater.show(slate: frame)
            _ = repeater.standIn()
        }
    }

    @Test("Frames are in display order only if their parameter set guarantees it")
    func order() throws {
        let free = try #require(SequenceParameters(unit: MadeUpStream(orderType: 0).sequence))
        let strict = try #require(SequenceParameters(unit: MadeUpStream(orderType: 2).sequence))
        #expect(!free.isInDisplayOrder && free.reorderedFrames >= 1)
        #expect(strict.isInDisplayOrder && strict.reorderedFrames == 0)
        #expect(free.profileName == "Main" && !free.isBaseline)
    }
}
