internal import CQREncode
import Glibc
import MediaAuthoring

/// A text and each frame's capture time as a QR code: hold a telephone to it to measure the latency of a room. Drawn by
/// libqrencode.
public struct QRCodeCapturer: Capturer {
    public static let name = "qr-code"
    public static let summary = "Draws a text and the capture time as a QR code"
    @Setting("The text before the time", isChangeable: true) var text = "connectlive"
    @Setting("Width and height of the frame", in: 128...1080, unit: "pixels") var size = 480
    @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 10

    public init() {}

    public func format() -> PictureFormat {
        PictureFormat(.gray8, width: size, height: size, framesPerSecond: Double(fps))
    }

    public func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            try await output.draw { picture in
                let message = "\(text) \(picture.captureTime.nanoseconds / 1_000_000)"
                let code = QRcode_encodeString(message, 0, QR_ECLEVEL_M, QR_MODE_8, 1)
                defer { QRcode_free(code) }
                // ISO/IEC 18004 requires a white border of four modules.
                guard let code = code?.pointee, Int(code.width) + 8 <= size else {
                    throw MediaError(
                        code: "qr-code.too-long",
                        message: "\(size) pixels cannot hold a code of \(message.utf8.count) bytes. Shorten the text.")
                }
                Self.draw(code, in: &picture)
            }
        }
    }

    /// Row by row: without optimization, a loop over pixels takes longer than a frame lasts.
    private static func draw(_ code: QRcode, in picture: inout MutableVideoFrame) {
        let (modules, size) = (Int(code.width), picture.height)
        let scale = size / (modules + 8)
        let margin = (size - modules * scale) / 2
        picture.withPlane(.packed) { plane, stride in
            plane.withUnsafeMutableBytes { bytes in
                guard let pixels = bytes.baseAddress else { return }
                memset(pixels, 255, bytes.count)
                for y in 0..<modules {
                    let row = pixels + (margin + y * scale) * stride
                    // The lowest bit of a module is 1 if it is black.
                    for x in 0..<modules where code.data[y * modules + x] & 1 == 1 {
                        memset(row + margin + x * scale, 0, scale)
                    }
                    for copy in 1..<scale { memcpy(row + copy * stride, row, size) }
                }
            }
        }
    }
}
