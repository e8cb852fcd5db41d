public import MediaAuthoring

/// Traps at frames with an odd width, because it assumes that half the chroma width is rounded down.
public struct Overstepping: Processor {
    public static let name = "overstepping"
    public static let summary = "Changes the chroma in pairs of pixels"

    public init() {}

    public mutating func process(_ frame: inout MutableVideoFrame) {
        let columns = frame.width / 2
        precondition(columns * 2 == frame.width, "There is half a pixel of chroma")
        frame.fill(luma: 100)
    }
}
