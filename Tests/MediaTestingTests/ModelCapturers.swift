import Glibc
import MediaAuthoring
import MediaTesting
import Synchronization

/// A correct capturer: settings, a device that can be absent or disappear, and formats that change.
struct Model: Rehearsed, Capturer {
    static let summary = "Grey frames of a fictitious device"
    @Setting("Which device") var device = "first"
    @Setting("Frames per second", in: 5...60, unit: "frames/s") var fps = 30
    @Setting("Width of the frames", in: 16...128, unit: "pixels", isChangeable: true) var width = 64
    @Setting("How bright", in: 16...235, isChangeable: true) var shade = 100

    static let isThere = Mutex(true)

    static var rehearsal: Rehearsal {
        Rehearsal(
            failing: [["device": "second"]], vanish: { isThere.withLock { $0 = false } },
            restore: { isThere.withLock { $0 = true } })
    }

    private var current: PictureFormat {
        PictureFormat(.nv12, width: width, height: 36, framesPerSecond: Double(fps))
    }

    func format() throws -> PictureFormat {
        guard device == "first" else {
            throw MediaError(
                code: "model.absent", message: "There is no device \"\(device)\"; there is \"first\", so give that one."
            )
        }
        return current
    }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            guard Self.isThere.withLock({ $0 }) else {
                throw MediaError(
                    code: "model.lost", message: "The device \"\(device)\" has gone away; plug it in and start again.")
            }
            if output.format != current { try output.change(to: current) }
            let shade = UInt8(shade)
            try await output.draw { picture in
                for plane in [VideoPlane.luma, .chroma] {
                    picture.withPlane(plane) { bytes, _ in
                        for offset in 0..<bytes.byteCount {
                            bytes.storeBytes(of: shade, toByteOffset: offset, as: UInt8.self)
                        }
                    }
                }
            }
        }
    }
}

/// A device with a pace of its own. The capturer blocks in the device's library.
struct Blocking: Capturer {
    static let summary = "Frames in a driver's buffers"

    func format() -> PictureFormat { PictureFormat(.gray8, width: 32, height: 32, framesPerSecond: 50) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while !Task.isCancelled {
            usleep(20_000)
            try output.send { picture in
                picture.withPlane(.luma) { bytes, _ in
                    for offset in 0..<bytes.byteCount { bytes.storeBytes(of: 9, toByteOffset: offset, as: UInt8.self) }
                }
            }
        }
    }
}

struct Tone: Capturer {
    static let summary = "A square wave"

    func format() -> SoundFormat { SoundFormat() }

    func capture(into output: CaptureOutput<SoundFormat>) async throws {
        while true {
            try await output.fill { samples in
                for index in 0..<samples.count { samples[index] = index / 96 % 2 == 0 ? 8000 : -8000 }
            }
        }
    }
}

/// The header of a 64x48 JPEG file or of 320x240 H.264; the setting selects one.
struct Encoded: Capturer {
    enum Codec: String, SettingChoice { case mjpeg, h264 }
    static let summary = "Encoded frames"
    @Setting("Which codec") var codec = Codec.h264

    private static let jpeg: [UInt8] = [
        0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc0, 0, 11, 8, 0, 48, 0, 64, 1, 1, 0x11, 0, 0xff, 0xd9,
    ]
    /// Baseline, 20x15 macroblocks; then an IDR slice.
    static let h264: [UInt8] = [
        0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x0d, 0xda, 0x05, 0x07, 0xe4, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80, 0, 0, 1, 0x65,
        0x88,
    ]

    func format() -> EncodedPictureFormat {
        codec == .mjpeg
            ? EncodedPictureFormat(.mjpeg, width: 64, height: 48, framesPerSecond: 25)
            : EncodedPictureFormat(.h264, width: 320, height: 240, framesPerSecond: 25)
    }

    func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
        while true {
            let moment = try await output.nextMoment()
            try output.send(codec == .mjpeg ? Self.jpeg : Self.h264, at: moment, isKeyframe: true)
        }
    }
}
