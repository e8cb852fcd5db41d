import Glibc
public import MediaAuthoring

/// Never returns its format for one value of a setting.
public struct Hanging: Capturer {
    public static let name = "hanging"
    public static let summary = "Waits for a device that does not answer"
    @Setting("Whether the device is asked") var isAsked: Bool

    public init() {}

    public func format() -> PictureFormat {
        while isAsked { pause() }
        return PictureFormat(.gray8, width: 64, height: 48, framesPerSecond: 30)
    }

    public func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            try await output.draw { picture in
                picture.withPlane(.luma) { luma, _ in
                    for offset in 0..<luma.byteCount { luma.storeBytes(of: 9, toByteOffset: offset, as: UInt8.self) }
                }
            }
        }
    }
}
