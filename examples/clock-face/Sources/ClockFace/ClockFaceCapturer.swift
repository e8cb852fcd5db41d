import Glibc
import MediaAuthoring

/// The time of day as a round clock: three hands, twelve marks, and the frame number as a bar code.
public struct ClockFaceCapturer: Capturer {
    public static let name = "clock-face"
    public static let summary = "Draws a clock with the time of day"
    @Setting("Width and height of the frame", in: 120...1080, unit: "pixels") var height = 360
    @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
    @Setting("Whether to draw the second hand", isChangeable: true) var seconds = true

    public init() {}

    public func format() -> PictureFormat {
        PictureFormat(width: height / 2 * 2, height: height / 2 * 2, framesPerSecond: Double(fps))
    }

    public func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number: UInt32 = 0
        while true {
            try await output.draw { picture in
                picture.fill(luma: 230)
                for mark in 0..<12 { draw(Double(mark) / 12, from: 0.85, to: 0.95, width: 3, in: &picture) }
                let (hour, minute, second) = Self.time
                draw((hour + minute / 60) / 12, from: 0, to: 0.5, width: 4, in: &picture)
                draw((minute + second / 60) / 60, from: 0, to: 0.75, width: 3, in: &picture)
                if seconds { draw(second / 60, from: 0, to: 0.8, width: 1, in: &picture) }
                picture.draw(barCode: number)
            }
            number += 1
        }
    }

    private static var time: (hour: Double, minute: Double, second: Double) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var parts = tm()
        localtime_r(&now.tv_sec, &parts)
        let second = Double(parts.tm_sec) + Double(now.tv_nsec) / 1e9
        return (Double(parts.tm_hour % 12), Double(parts.tm_min), second)
    }

    /// A black line along a radius: `turn` is 0 at the top and grows clockwise to 1, the ends are parts of the radius.
    private func draw(
        _ turn: Double, from start: Double, to end: Double, width: Int, in picture: inout MutableVideoFrame
    ) {
        let (size, radius) = (picture.height, Double(picture.height) / 2)
        picture.withPlane(.luma) { luma, stride in
            for step in Int(start * radius)..<Int(end * radius) {
                let x = Int(radius + sin(turn * 2 * .pi) * Double(step))
                let y = Int(radius - cos(turn * 2 * .pi) * Double(step))
                for row in max(0, y - width / 2)...min(size - 1, y + width / 2) {
                    for column in max(0, x - width / 2)...min(size - 1, x + width / 2) {
                        luma.storeBytes(of: 16, toByteOffset: row * stride + column, as: UInt8.self)
                    }
                }
            }
        }
    }
}
