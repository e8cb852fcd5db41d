public import MediaAuthoring

/// Prints the brightness of the frames.
public struct LightMeter: Renderer {
    public static let summary = "Prints the mean brightness of every hundredth frame"
    @Setting("Frames per printed line", in: 1...10_000, isChangeable: true) var every = 100

    public init() {}

    public func render(_ media: RenderStream<VideoFrame>) async throws {
        var count = 0
        // Ends with the stream, and when the graph stops. It keeps no frame.
        for await frame in media {
            count += 1
            if count.isMultiple(of: every) { print("frame \(count): \(Self.brightness(of: frame)) %") }
        }
    }

    /// The mean of some of the luma samples, 0 (black) to 100 (white).
    private static func brightness(of frame: VideoFrame) -> Int {
        frame.withPlane(.luma) { luma, stride in
            var sum = 0
            var count = 0
            for row in Swift.stride(from: 0, to: frame.height, by: 8) {
                for offset in Swift.stride(from: row * stride, to: row * stride + frame.width, by: 8) {
                    sum += Int(luma.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                    count += 1
                }
            }
            return max(0, min(100, (sum / max(count, 1) - 16) * 100 / 219))
        }
    }
}
