public import MediaAuthoring

/// Traps at the ends of two settings: one that is read at the start, and a live one.
public struct Trapping: Capturer {
    public static let name = "trapping"
    public static let summary = "Divides by what it is given"
    @Setting("Frames between two changes of the shade", in: 0...100) var every = 10
    @Setting("How bright, while it runs", in: 16...235, isChangeable: true) var shade = 100
    @Setting("The title") var title = "grey"

    public init() {}

    public func format() throws -> PictureFormat {
        guard title == "grey" else { throw MediaError(code: "trapping.title", message: "No.") }
        return PictureFormat(.gray8, width: 64, height: 48, framesPerSecond: 30)
    }

    public func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number = 0
        while true {
            precondition(shade < 235, "There is nothing as bright as \(shade)")
            let value = UInt8(shade + number / every % 2)
            try await output.draw { picture in
                picture.withPlane(.luma) { luma, _ in
                    for offset in 0..<luma.byteCount {
                        luma.storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
                    }
                }
            }
            number += 1
        }
    }
}
