/// A strip of black and white blocks at the top left of a frame that encodes a frame number and a checksum.
///
/// The 32 bits of the number come first, highest bit first, then 8 bits of CRC-8 (polynomial 0x07, start 0x5a). A
/// block is 16 pixels square in a frame that is at least 640 pixels wide, else 8; blocks that do not fit wrap into further
/// rows. Blocks line up with the macroblocks of VP8 and H.264 and survive 300 kbit/s.
public enum BarCode {
    private static let bits = 40
    private static let black: UInt8 = 16
    private static let white: UInt8 = 235
    private static let threshold = 126

    /// The layout of the blocks in a frame of this size, or nil if they do not fit.
    private static func layout(width: Int, height: Int) -> (block: Int, columns: Int)? {
        let block = width >= 640 ? 16 : 8
        let columns = min(width / block, bits)
        guard columns > 0 else { return nil }
        let rows = (bits + columns - 1) / columns
        return rows * block <= height ? (block, columns) : nil
    }

    /// Draws `number` into a luma plane. Does nothing if the frame is too small for the strip.
    public static func draw(
        _ number: UInt32, into luma: inout MutableRawSpan, stride: Int, width: Int, height: Int
    ) {
        guard let (block, columns) = layout(width: width, height: height) else { return }
        let code = UInt64(number) << 8 | UInt64(checksum(number))
        for index in 0..<bits {
            let shade = code >> UInt64(bits - 1 - index) & 1 == 1 ? white : black
            let left = index % columns * block
            let top = index / columns * block
            for y in top..<top + block {
                for x in left..<left + block {
                    luma.storeBytes(of: shade, toByteOffset: y * stride + x, as: UInt8.self)
                }
            }
        }
    }

    /// Reads the number from a luma plane, or nil if the checksum does not match.
    public static func read(_ luma: RawSpan, stride: Int, width: Int, height: Int) -> UInt32? {
        guard let (block, columns) = layout(width: width, height: height) else { return nil }
        var code: UInt64 = 0
        for index in 0..<bits {
            let left = index % columns * block
            let top = index / columns * block
            // Codecs smear the edges: only the middle of a block counts.
            let margin = block / 4
            var sum = 0
            for y in top + margin..<top + block - margin {
                for x in left + margin..<left + block - margin {
                    let offset = y * stride + x
                    guard offset < luma.byteCount else { return nil }
                    sum += Int(luma.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                }
            }
            let side = block - 2 * margin
            code = code << 1 | (sum > threshold * side * side ? 1 : 0)
        }
        let number = UInt32(truncatingIfNeeded: code >> 8)
        return UInt8(truncatingIfNeeded: code) == checksum(number) ? number : nil
    }

    private static func checksum(_ number: UInt32) -> UInt8 {
        var register: UInt8 = 0x5a
        for shift in [24, 16, 8, 0] {
            register ^= UInt8(truncatingIfNeeded: number >> UInt32(shift))
            for _ in 0..<8 {
                register = register & 0x80 != 0 ? register << 1 ^ 0x07 : register << 1
            }
        }
        return register
    }
}
