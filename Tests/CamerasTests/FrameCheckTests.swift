import Cameras
import Foundation
import MediaGraph
import TestSupport
import Testing

/// The bytes of a frame, by its pieces of memory.
struct Planes: CapturedFrame.Memory {
    let planes: [[UInt8]]

    init(_ planes: [[UInt8]]) { self.planes = planes }

    func withBytes<Result>(_ plane: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result {
        let bytes = planes[plane]
        return try body(bytes.span.bytes)
    }

    func giveBack() {}
}

/// Frames and layouts of careless drivers.
@Suite struct FrameCheckTests {
    private func isUsable(_ lengths: [Int], _ layout: CaptureLayout) -> Bool {
        var check = FrameCheck(layout)
        let frame = CapturedFrame(
            Planes(lengths.map { [UInt8](repeating: 1, count: $0) }), lengths: lengths, timestamp: nil, sequence: 0)
        return check.judge(frame, at: .seconds(5)) != .damaged
    }

    private func layout(_ format: FourCC, _ size: FrameSize = FrameSize(64, 48), _ strides: Int...) -> CaptureLayout {
        CaptureLayout(
            CaptureMode(format, size, nil), planes: strides.map { .init(stride: $0, bytes: $0 &* size.height) })
    }

    @Test func `a frame with a short piece of memory is damaged`() {
        let parts = layout("NM12", FrameSize(64, 48), 64, 64)
        #expect(isUsable([64 * 48, 64 * 24], parts))
        #expect(isUsable([64 * 48 + 9, 64 * 24], parts))
        #expect(!isUsable([64 * 48, 64 * 24 - 1], parts))
        #expect(!isUsable([64 * 72, 0], parts))
        #expect(!isUsable([64 * 48 - 1, 64 * 25], parts))
        #expect(!isUsable([64 * 48], parts))
        #expect(isUsable([64 * 72], layout("NV12", FrameSize(64, 48), 64)))
        #expect(!isUsable([64 * 72 - 1], layout("NV12", FrameSize(64, 48), 64)))
        // Every second pixel has colour, also the last one.
        #expect(layout("YU12", FrameSize(65, 49), 66).leastBytes == [66 * 49 + 33 * 25 * 2])
        #expect(!isUsable([], layout("MJPG")))
    }

    @Test func `a layout whose frames cannot be read is refused`() {
        #expect(layout("YUYV", FrameSize(64, 48), 128).problem == nil)
        #expect(layout("NM12", FrameSize(64, 48), 64, 64).problem == nil)
        #expect(layout("YM12", FrameSize(64, 48), 64, 32, 32).problem == nil)
        #expect(layout("MJPG", FrameSize(64, 48), 0).problem == nil)
        let huge = FrameSize(4_294_967_295, 4_294_967_295)
        for wrong in [
            layout("YUYV", FrameSize(64, 48), 2), layout("YUYV", FrameSize(64, 48), Int.max / 48),
            layout("NM12", FrameSize(64, 48), 64, 16), layout("YM12", FrameSize(64, 48), 64, 32),
            layout("YUYV", FrameSize(64, 48), 128, 128), layout("MJPG"),
            layout("MJPG", FrameSize(64, 48), 0, 0, 0, 0, 0),
            CaptureLayout(CaptureMode("YUYV", huge, nil), planes: [.init(stride: huge.width, bytes: 5)]),
        ] {
            #expect(wrong.problem != nil, "\(wrong)")
            #expect(wrong.colourPlanes().isEmpty)
            let error = #expect(throws: MediaError.self) { try wrong.check(of: "front") }
            #expect(error?.code == "camera.no-mode")
        }
    }

    /// A JPEG of a size, as far as its frame header.
    private static func jpeg(_ width: Int, _ height: Int, before: [UInt8] = []) -> [UInt8] {
        func word(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 255)] }
        return [0xff, 0xd8] + before + [0xff, 0xc0, 0, 11, 8] + word(height) + word(width) + [1, 1, 0x11, 0]
            + [0xff, 0xda, 0, 2, 7, 7, 0xff, 0xd9]
    }

    @Test func `a JPEG of another size than the mode's is damaged`() {
        func isUsable(_ bytes: [UInt8], isProgressive: Bool = true) -> Bool {
            var check = FrameCheck(
                CaptureLayout(
                    CaptureMode("MJPG", FrameSize(64, 44), nil), isProgressive: isProgressive,
                    planes: [.init(stride: 0, bytes: 64)]))
            let frame = CapturedFrame(Planes([bytes]), lengths: [bytes.count], timestamp: nil, sequence: 0)
            return check.judge(frame, at: .seconds(5)) != .damaged
        }
        let tables: [UInt8] = [0xff, 0xe0, 0, 4, 0xff, 0xc0, 0xff, 0xff, 0xc4, 0, 3, 1, 9]
        #expect(isUsable(Self.jpeg(64, 44)))
        #expect(isUsable(Self.jpeg(64, 48, before: tables)))
        #expect(!isUsable(Self.jpeg(30_000, 30_000)))
        #expect(!isUsable(Self.jpeg(64, 30_000, before: tables)))
        #expect(!isUsable(Self.jpeg(64, 0)))
        #expect(!isUsable(Self.jpeg(64, 22)))
        #expect(isUsable(Self.jpeg(64, 22), isProgressive: false))
        for end in 4..<25 { _ = isUsable(Array(Self.jpeg(64, 44, before: tables).prefix(end))) }
    }

    @Test func `one wrong timestamp does not make the later ones wrong`() {
        var check = FrameCheck(layout("YUYV", FrameSize(64, 48), 128))
        var times: [Duration] = []
        // Each frame arrives one and a half frame times after its capture.
        for number in 0..<60 {
            let capture = Duration.seconds(100) + .milliseconds(33 * number)
            let stamp = number == 20 ? .seconds(3) : capture
            let frame = CapturedFrame(
                Planes([[UInt8](repeating: 1, count: 128 * 48)]), lengths: [128 * 48], timestamp: stamp,
                sequence: UInt32(number))
            guard case .usable(let time) = check.judge(frame, at: capture + .milliseconds(50)) else { continue }
            times.append(time)
        }
        #expect(check.counts.wrongTimes == 1)
        #expect(times.count == 60 && zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(times.last == .seconds(100) + .milliseconds(33 * 59))
    }

    @Test func `the pace is that of the mode, then as measured, and a pause does not matter`() {
        var watch = RateWatch(
            CaptureLayout(CaptureMode("YUYV", FrameSize(64, 48), FrameRate(30)), planes: []))
        #expect(watch.pace == 30)
        var (time, number) = (Duration.zero, UInt32(0))
        func capture(_ count: Int, every interval: Duration) {
            for _ in 0..<count {
                (time, number) = (time + interval, number + 1)
                _ = watch.captured(at: time, number: number)
            }
        }
        capture(150, every: .milliseconds(40))
        #expect(abs((watch.pace ?? 0) - 25) < 0.5)
        capture(1, every: .milliseconds(1900))
        #expect((watch.pace ?? 0) > 20)
        capture(20, every: .seconds(1))
        #expect(abs((watch.pace ?? 0) - 1) < 0.1)
    }
}
