public import MediaAuthoring

/// Writes one byte beyond its allocation.
public struct Overrunning: Capturer {
    public static let summary = "Writes where nothing is its own"

    public init() {}

    public func format() -> PictureFormat { PictureFormat(.gray8, width: 60, height: 48, framesPerSecond: 30) }

    public func capture(into output: CaptureOutput<PictureFormat>) async throws {
        let scratch = UnsafeMutablePointer<UInt8>.allocate(capacity: 60)
        defer { scratch.deallocate() }
        while true {
            try await output.draw { picture in
                for column in 0...picture.width { scratch[column] = UInt8(column) }
                let shade = scratch[0]
                picture.withPlane(.luma) { luma, _ in
                    for offset in 0..<luma.byteCount {
                        luma.storeBytes(of: shade, toByteOffset: offset, as: UInt8.self)
                    }
                }
            }
        }
    }
}
