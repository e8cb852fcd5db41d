import FrameSocket
import Testing

@testable import MediaNodes

/// Frames that are split out of a program's output.
@Suite struct SplitterTests {
    private struct Random: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return state &* 2_685_821_657_736_338_717
        }
    }

    /// A JPEG of 64x48 in form only: a segment that contains a false end marker, a scan with stuffed and restart bytes.
    private let jpeg: [UInt8] =
        [0xff, 0xd8, 0xff, 0xe1, 0, 8, 0xff, 0xd8, 1, 0xff, 0xd9, 2]
        + [0xff, 0xc0, 0, 11, 8, 0, 48, 0, 64, 1, 1, 0x11, 0] + [0xff, 0xda, 0, 3, 1]
        + [1, 2, 0xff, 0, 0xd9, 0xff, 0xd3, 7] + [0xff, 0xd9]
    /// Two frames in the form of H.264: parameter sets, a keyframe of two slices, and a frame of one slice.
    private let first: [UInt8] =
        [0, 0, 0, 1, 0x67, 1, 2] + [0, 0, 0, 1, 0x68, 3] + [0, 0, 1, 0x65, 0x88, 4] + [0, 0, 1, 0x65, 0x40, 5]
    private let second: [UInt8] = [0, 0, 0, 1, 0x41, 0x9a, 6, 7]
    private let third: [UInt8] = [0, 0, 0, 1, 0x09, 0x10, 0, 0, 1, 0x41, 0x9b, 8]

    private func split(_ bytes: [UInt8], _ encoding: FrameFormat.Encoding, by size: Int) -> [[UInt8]]? {
        var splitter = StreamSplitter(FrameFormat(encoding, width: 64, height: 48))
        var pictures: [[UInt8]] = []
        do {
            for start in stride(from: 0, to: bytes.count, by: size) {
                try splitter.append(Array(bytes[start..<min(start + size, bytes.count)])) { pictures.append($0) }
            }
        } catch {
            return nil
        }
        splitter.finish { pictures.append($0) }
        return pictures
    }

    @Test("Frames are found in pieces of any size", arguments: [1, 2, 3, 5, 7, 64, 10_000])
    func pieces(size: Int) {
        let between: [UInt8] = Array("--part\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
        #expect(split(jpeg + between + jpeg + jpeg.dropLast(), .mjpeg, by: size) == [jpeg, jpeg])
        #expect(split(first + second + third, .h264, by: size) == [first, second, third])
        let raw = [UInt8](repeating: 7, count: 64 * 48 * 3 / 2)
        #expect(split(raw + raw + [1], .i420, by: size) == [raw, raw])
    }

    @Test func `units that precede a frame belong to it, those of other layers too`() {
        let prefix: [UInt8] = [0, 0, 0, 1, 0x6e, 1, 2]
        #expect(split(first + prefix + second, .h264, by: 5) == [first, prefix + second])
    }

    @Test func `a last frame with a fault is left out`() {
        // A B slice.
        let wrong: [UInt8] = [0, 0, 0, 1, 0x41, 0xa0, 6, 7]
        #expect(split(first + wrong, .h264, by: 100) == [first])
    }

    @Test("Output without frames is reported")
    func faults() {
        #expect(split([0xff, 0xd8, 1, 2, 3], .mjpeg, by: 5) == nil)
        #expect(split([UInt8](repeating: 0, count: 70_000), .mjpeg, by: 1000) == nil)
        var other = jpeg
        other[18] = 50
        #expect(split(other, .mjpeg, by: 100) == nil, "another height")
        #expect(split([1, 2, 3] + first + second, .h264, by: 100) == nil, "no start code at the beginning")
        #expect(split([UInt8](repeating: 1, count: 17 << 20), .h264, by: 1 << 20) == nil)
    }

    @Test func `raw output that ends within a frame is a fault, with the sizes that fit its bytes and its pace`() throws
    {
        func lack(_ bytes: Int, as format: FrameFormat, seconds: Double = 1) throws -> String? {
            var splitter = StreamSplitter(format)
            try splitter.append([UInt8](repeating: 0, count: bytes)) { _ in }
            splitter.finish { _ in }
            return splitter.lack(after: seconds)?.reason
        }
        let small = FrameFormat(.i420, width: 320, height: 240)
        #expect(try lack(30 * small.bytesPerFrame, as: small) == nil)
        #expect(try lack(0, as: small) == nil)
        let dump = try #require(
            try lack(31 * 640 * 480 * 3 / 2, as: FrameFormat(.i420, width: 640, height: 360)))
        #expect(
            dump.hasPrefix(
                "its 14284800 bytes end 115200 bytes into a frame of 345600; they would be 31 frames of I420 640x480"),
            "\(dump)")
        // At 30 frames/s, and as fast as possible.
        let large = FrameFormat(.i420, width: 640, height: 480)
        let slow = try #require(try lack(30 * small.bytesPerFrame, as: large, seconds: 29.0 / 30))
        #expect(slow.contains("end 230400 bytes into a frame of 460800; they would be 30 frames of I420 320x240,"))
        #expect(
            try lack(30 * small.bytesPerFrame, as: large, seconds: 0)?.contains("30 frames of I420 320x240") == true)
        #expect(
            try lack(31 * 320 * 240 * 4, as: small)?.contains("they would be 31 frames of BGRx 320x240") == true)
        #expect(
            try lack(1001, as: small) == "its 1001 bytes end 1001 bytes into a frame of 115200")
        #expect(
            try lack(small.bytesPerFrame, as: large, seconds: 0)?.contains("they would be 1 frame of I420 320x240")
                == true)
    }

    @Test func `raw frames that come too fast may have the size that makes their rate the stated one`() {
        let small = RawSizeGuess(FrameFormat(.i420, width: 320, height: 240))
        let large = 640 * 480 * 3 / 2
        #expect(small.formats(at: 16 * large, in: 0.5)?.hasPrefix("I420 640x480") == true)
        #expect(small.formats(at: 10 * 320 * 240 * 4, in: 0.3)?.contains("BGRx 320x240") == true)
        #expect(small.formats(at: 3 * large, in: 0.07) == nil, "too few frames")
        #expect(small.formats(at: 16 * 100_000_000, in: 0.5) == nil, "no such size")
    }

    /// Pieces of some bytes, each in reads of 64 KiB, at a rate.
    private func told(
        _ bytes: Int, count: Int = 30, rate: Double = 30, merging merged: Set<Int> = []
    ) -> [String] {
        var rhythm = FrameRhythm(FrameFormat(.i420, width: 640, height: 480))
        var (told, now) = ([String](), UInt64(1))
        for piece in 0..<count {
            for start in stride(from: 0, to: bytes, by: 65_536) {
                now += 100_000
                let other = rhythm.take(min(65_536, bytes - start), at: now)
                if let other { told.append("\(other.length): \(other.formats)") }
            }
            now = merged.contains(piece) ? now : 1 + UInt64(Double(piece + 1) * 1e9 / rate)
        }
        return told
    }

    @Test func `live frames of another size are told once, by the pieces in which they come`() {
        let small = 320 * 240 * 3 / 2
        #expect(told(small).map { $0.prefix(20) } == ["115200: I420 320x240"])
        #expect(told(640 * 480 * 2).first?.contains("YUY2 640x480") == true)
        #expect(told(small, merging: [4, 15]) == told(small), "two frames at once")
        #expect(told(640 * 480 * 3 / 2).isEmpty, "the stated size")
        #expect(told(115_201).isEmpty, "no usual size")
        #expect(told(small, rate: 120).isEmpty, "a quarter of a frame at a time")
        #expect(told(small, count: 9).isEmpty, "too few")
    }

    @Test("Random bytes end soon, in frames or an error", arguments: UInt64(1)...6)
    func random(seed: UInt64) {
        var random = Random(state: seed &* 0x9e37_79b9_7f4a_7c15)
        for encoding in [FrameFormat.Encoding.mjpeg, .h264] {
            for _ in 0..<200 {
                var bytes: [UInt8] = []
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    bytes += [jpeg, first, second, third].randomElement(using: &random) ?? []
                    bytes += (0..<Int.random(in: 0...8, using: &random)).map { _ in .random(in: 0...255, using: &random)
                    }
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
                }
                _ = split(bytes, encoding, by: Int.random(in: 1...100, using: &random))
            }
        }
    }
}
