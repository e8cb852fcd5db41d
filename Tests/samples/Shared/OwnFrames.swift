import ConnectLiveSDK
import Testing

/// Frames that get brighter.
final class Dawn {
    let media: LocalMedia?

    init() {
        var config = Config()
        config.mediaOptions.source = .bypass
        (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (1280, 720)
        media = ConnectLive.createLocalMedia(config: config)
    }

    /// Called on any thread, for each frame.
    func capture(luma: UInt8) {
        guard let frame = PixelBuffer(width: 1280, height: 720) else { return }
        frame.draw { $0.fill(luma: luma) }
        media?.videoSource?.didCapturePixelBuffer(frame, time: .now, orientation: .landscapeRight)
    }
}

/// Draws a white square into the corner of each frame.
final class Logo: FrameBlender {
    func blend(frame: PixelBuffer) -> PixelBuffer? {
        frame.draw { content in
            content.withPlane(.luma) { bytes, stride in
                for row in 0..<16 {
                    for column in 0..<16 {
                        bytes.storeBytes(of: 235, toByteOffset: row * stride + column, as: UInt8.self)
                    }
                }
            }
        }
        return frame
    }
}

/// The code of docs/own-frames.md.
@Suite struct OwnFramesTests {
    @Test func `frames are passed to media with the source bypass`() {
        let dawn = Dawn()
        dawn.capture(luma: 120)
        #expect(dawn.media?.videoSource != nil)
    }

    @Test func `a logo is drawn into the corner`() throws {
        let frame = try #require(PixelBuffer(width: 64, height: 48))
        frame.draw { $0.fill(luma: 40) }
        let blended = try #require(Logo().blend(frame: frame))
        func luma(_ column: Int, _ row: Int) -> UInt8 {
            blended.withPlane(.luma) { bytes, stride in
                bytes.unsafeLoad(fromByteOffset: row * stride + column, as: UInt8.self)
            }
        }
        #expect(luma(0, 0) == 235 && luma(15, 15) == 235 && luma(16, 0) == 40 && luma(0, 16) == 40)
    }
}
