internal import RoomProtocol

/// How a screen is shared: `Config.screenShare`. (Linux)
public struct ScreenShareOptions: Sendable, Hashable {
    /// In pixels, from 16 to 8192. Frames of another size are scaled, with borders if the shape differs. 1280x720 by default.
    public var width = 1280
    /// In pixels, from 16 to 8192. 720 by default.
    public var height = 720
    /// The most frames a second, from 1 to 240. 15 by default.
    public var framesPerSecond = 15

    /// 1280x720 with at most 15 frames per second.
    public init() {}

    func validate() throws(RoomError) {
        let isValid =
            (16...8192).contains(width) && (16...8192).contains(height) && (1...240).contains(framesPerSecond)
        guard isValid else {
            throw RoomError(
                .shareDataInvalid,
                "A screen cannot be shared at \(width)x\(height) with \(framesPerSecond) frames/s. Set Config.screenShare to 16 to "
                    + "8192 pixels and 1 to 240 frames/s.")
        }
    }
}
