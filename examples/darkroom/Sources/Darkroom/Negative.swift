public import MediaAuthoring

/// A negative of the luma, with the strength of the setting.
public struct Negative: Processor {
    public static let summary = "Inverts the brightness"
    @Setting("Strength of the negative", in: 0...100, unit: "%", isChangeable: true) var strength = 100

    /// The result for each value of a sample, for the strength of the last frame.
    private var table: [UInt8] = []
    private var strengthOfTable: Int?

    public init() {}

    public mutating func process(_ frame: inout MutableVideoFrame) {
        let strength = strength
        if strengthOfTable != strength {
            table = (0...255).map { UInt8(($0 * (100 - strength) + (255 - $0) * strength) / 100) }
            strengthOfTable = strength
        }
        let (table, width, height) = (table, frame.width, frame.height)
        frame.withPlane(.luma) { luma, stride in
            // The stride of a row can exceed the frame's width.
            for row in 0..<height {
                for offset in row * stride..<row * stride + width {
                    let sample = luma.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
                    luma.storeBytes(of: table[Int(sample)], toByteOffset: offset, as: UInt8.self)
                }
            }
        }
    }
}
