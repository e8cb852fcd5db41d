import MediaAuthoring
@testable import MediaTesting

/// Capturers with one fault each. The kit's own tests show that each fails its check, and no other.
///
/// They are also examples of common mistakes, with a comment at each fault.
enum BrokenCapturers {
    /// Each capturer with the name of the check that it fails.
    static let all: [(check: String, capturer: @Sendable () -> any Capturer)] = [
        ("formats", Misstated.init), ("formats", HalfDrawn.init), ("formats", Unmarked.init),
        ("formats", Headless.init),
        ("timestamps", Backwards.init), ("clock", Drifting.init), ("pacing", Rushed.init),
        ("slow-consumer", Clinging.init), ("slow-consumer", Deaf.init), ("cancel", Lingering.init),
        ("stop-while-starting", SlowStarter.init), ("failure-while-starting", Swallowing.init),
        ("format-change", Unannounced.init), ("settings", Overreaching.init), ("vanishing", Ghost.init),
        ("errors", Terse.init), ("reopening", LeakingDescriptors.init), ("reopening", LeakingThreads.init),
        ("reopening", LeakingMemory.init),
    ]

    static let format = PictureFormat(width: 64, height: 48, framesPerSecond: 30)

    /// Draws every row of a frame.
    static func paint(_ picture: inout MutableVideoFrame, _ shade: UInt8, rows share: Double = 1) {
        for plane in VideoPlane.allCases {
            picture.withPlane(plane) { bytes, _ in
                for offset in 0..<Int(Double(bytes.byteCount) * share) {
                    bytes.storeBytes(of: shade, toByteOffset: offset, as: UInt8.self)
                }
            }
        }
    }

    /// The header of a VP8 keyframe without further data: RFC 6386, section 9.1.
    static func keyframe(width: Int, height: Int) -> [UInt8] {
        [0x10, 0, 0, 0x9d, 0x01, 0x2a]
            + [UInt8(width & 0xff), UInt8(width >> 8), UInt8(height & 0xff), UInt8(height >> 8)]
    }

    /// The header of a VP8 frame that is not a keyframe.
    static let difference: [UInt8] = [0x11, 0, 0]
}

extension CaptureOutput {
    /// Waits for this long on the clock of capture times.
    func wait(seconds: Double) async throws {
        try await wait(until: now.advanced(by: seconds))
    }
}
