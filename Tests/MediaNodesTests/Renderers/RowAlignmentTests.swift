import Cameras
import GStreamerKit
import MediaGraph
import TestSupport
import Testing

@testable import MediaNodes

/// Frames whose rows begin anywhere: drivers choose the addresses, and GStreamer's converters crash at some of them.
@Suite struct RowAlignmentTests {
    /// The memory of a made-up driver, at any address. All bytes are the same.
    // @unchecked: nothing changes it after it was filled.
    private final class Bytes: CapturedFrame.Memory, @unchecked Sendable {
        private let memory: UnsafeMutableRawBufferPointer
        private let start: Int

        /// - Parameter start: bytes from an address that is a multiple of 64.
        init(count: Int, from start: Int) {
            memory = .allocate(byteCount: start + count, alignment: 64)
            memory.initializeMemory(as: UInt8.self, repeating: 110)
            self.start = start
        }

        deinit { memory.deallocate() }

        func withBytes<Result>(_ plane: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result {
            try body(UnsafeRawBufferPointer(rebasing: memory[start...]).bytes)
        }

        func giveBack() {}
    }

    private static let formats: [FourCC] = [
        "YU12", "YV12", "NV12", "NV21", "YUYV", "UYVY", "YVYU", "VYUY", "NV16", "NV61", "NV24", "422P", "RGB3", "BGR3",
        "RGB4",
        "BX24", "BA24", "BGR4", "AR24", "XB24", "AB24", "RGBP", "RGBO", "GREY", "Y16", "Y16-BE",
    ]

    /// Converts a frame of a layout to a format in its own size or half of it. Returns the mean of its bytes.
    private func converted(_ layout: CaptureLayout, from start: Int, to format: String, by scale: Int) async throws
        -> Int
    {
        let seen = Collected<Int>()
        let pipeline = Pipeline { _ in }
        let source = try Element("appsrc", PushSource.properties)
        let push = PushSource(source)
        push.setFormat(Caps(layout.mode.caps))
        let end = try Element("fakesink", ["sync": false, "async": false])
        let (width, height) = (layout.mode.size.width / scale, layout.mode.size.height / scale)
        let chain = [
            source, try Element("videoscale"), try Element("videoconvert"),
            try Element.filter("video/x-raw,format=\(format),width=\(width),height=\(height)"), end,
        ]
        for element in chain { pipeline.add(element) }
        for (from, to) in zip(chain, chain.dropFirst()) { try from.link(to) }
        end.sink.watchBuffers { buffer in
            let count = width * height
            let sum = buffer.read { bytes in
                (0..<count).reduce(0) { $0 + Int(bytes.unsafeLoad(fromByteOffset: $1, as: UInt8.self)) }
            }
            seen.append((sum ?? 0) / count)
        }
        #expect(pipeline.play())
        defer { pipeline.stop() }
        let count = layout.planes[0].bytes
        let frame = CapturedFrame(
            Bytes(count: count, from: start), lengths: [count], timestamp: .seconds(1), sequence: 0, spare: 4)
        #expect(push.push(frame, of: layout, timestamp: 0))
        await eventually("the frame of \(layout)") { seen.count > 0 }
        return seen.all.first ?? -1
    }

    @Test(arguments: formats)
    func `frames of any stride and address are converted`(format: FourCC) async throws {
        let all = (0..<14).map { (padding: $0, start: 0) } + [1, 2, 4, 8].map { (padding: 0, start: $0) }
        // Each third one in make test, for each format others.
        let step = Soak.rounds(3, soak: 1)
        let first = (Self.formats.firstIndex(of: format) ?? 0) % step
        let places = stride(from: first, to: all.count, by: step).map { all[$0] }
        for (size, output, scale) in [
            (FrameSize(320, 240), "I420", 1), (FrameSize(64, 34), "I420", 2), (FrameSize(320, 240), "NV12", 1),
            (FrameSize(320, 240), "BGRx", 1),
        ] {
            let mode = CaptureMode(format, size, FrameRate(30))
            let row = try #require(mode.rowBytes)
            var means: Set<Int> = []
            for (padding, start) in places {
                let stride = row + padding
                let layout = CaptureLayout(mode, planes: [.init(stride: stride, bytes: stride * size.height * 3)])
                means.insert(try await converted(layout, from: start, to: output, by: scale))
            }
            #expect(means.count == 1, "\(output) has the means \(means)")
        }
    }
}
