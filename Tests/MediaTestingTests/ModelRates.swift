import Glibc
import MediaAuthoring
@testable import MediaTesting

/// A frame every second, or as rarely as every two and a half.
struct Leisurely: Capturer {
    static let summary = "A camera for plants"
    @Setting("Frames per second", in: 0.4...60, unit: "frames/s", isChangeable: true) var fps = 1.0

    func format() -> PictureFormat { PictureFormat(.gray8, width: 32, height: 32, framesPerSecond: fps) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            if output.format != format() { try output.change(to: format()) }
            try await output.draw(paintGrey)
        }
    }
}

/// A device with its own pace of two frames per second.
struct Tardy: Capturer {
    static let summary = "A driver with two frames per second"

    func format() -> PictureFormat { PictureFormat(.gray8, width: 32, height: 32, framesPerSecond: 2) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            try await output.wait(until: output.now.advanced(by: 0.5))
            try output.send(paintGrey)
        }
    }
}

/// A frame every twenty seconds: too slow to wait for several.
struct Glacial: Capturer {
    static let summary = "A camera for glaciers"

    func format() -> PictureFormat { PictureFormat(.gray8, width: 32, height: 32, framesPerSecond: 0.05) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true { try await output.draw(paintGrey) }
    }
}

/// Refuses one end of its range with a message that is too short.
struct Curt: Capturer {
    static let summary = "Says little at the end of a range"
    @Setting("How bright", in: 16...235) var shade = 100

    func format() throws -> PictureFormat {
        if shade == 235 { throw MediaError(code: "x", message: "no way") }
        return PictureFormat(.gray8, width: 32, height: 32, framesPerSecond: 30)
    }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true { try await output.draw(paintGrey) }
    }
}

private func paintGrey(_ picture: inout MutableVideoFrame) {
    picture.withPlane(.luma) { bytes, _ in
        for offset in 0..<bytes.byteCount { bytes.storeBytes(of: 9, toByteOffset: offset, as: UInt8.self) }
    }
}
