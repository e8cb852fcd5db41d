import Glibc
import MediaAuthoring

/// 1080p at 60 a second, drawn as the benchmark's other ways draw: a bar code and one row. The same file is built into the
/// benchmark and into a plugin.
struct DrawnPictures: Capturer {
    static let summary = "Draws the frames of the benchmark"

    func format() -> PictureFormat { PictureFormat(width: 1920, height: 1080, framesPerSecond: 60) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number: UInt32 = 0
        var due = output.now.nanoseconds
        while true {
            due += 1_000_000_000 / 60
            var target = timespec(tv_sec: Int(due / 1_000_000_000), tv_nsec: Int(due % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nil)
            try output.send { picture in
                picture.draw(barCode: number)
                let (width, row) = (picture.width, picture.height / 2 + Int(number) % (picture.height / 4))
                picture.withPlane(.luma) { luma, stride in
                    for column in 0..<width {
                        luma.storeBytes(
                            of: UInt8(truncatingIfNeeded: number), toByteOffset: row * stride + column, as: UInt8.self)
                    }
                }
            }
            number += 1
        }
    }
}
