internal import Glibc
package import MediaGraph

extension DeviceProbe {
    /// A camera's controls with integer values, in the kernel's order. Nil if the device cannot be queried.
    package static func controls(of path: String) -> [CameraControl]? {
        let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var found: [CameraControl] = []
        var query = ControlQuery(after: 0)
        while query.ask(descriptor) {
            if let control = query.control(of: descriptor) { found.append(control) }
            query = ControlQuery(after: query.identifier)
        }
        return found
    }
}

/// struct v4l2_queryctrl of videodev2.h, 17 words: id, type, 8 of name, minimum, maximum, step, default, flags, 2 more.
private struct ControlQuery {
    /// VIDIOC_QUERYCTRL is _IOWR('V', 36, 68 bytes), VIDIOC_QUERYMENU _IOWR('V', 37, 44 bytes).
    private static let request: UInt = 0xc044_5624
    private static let menuRequest: UInt = 0xc02c_5625
    private static let next: UInt32 = 0x8000_0000
    private static let (disabled, readOnly): (UInt32, UInt32) = (0x1, 0x4)
    private static let (integer, boolean, menu, integerMenu): (UInt32, UInt32, UInt32, UInt32) = (1, 2, 3, 9)

    private var words = [UInt32](repeating: 0, count: 17)

    init(after identifier: UInt32) { words[0] = identifier | Self.next }

    var identifier: UInt32 { words[0] }

    mutating func ask(_ descriptor: Int32) -> Bool { ioctl(descriptor, Self.request, &words) == 0 }

    /// Nil for a control without an integer value (a button, a text, a heading), or one that is disabled.
    func control(of descriptor: Int32) -> CameraControl? {
        let isMenu = words[1] == Self.menu || words[1] == Self.integerMenu
        guard isMenu || words[1] == Self.integer || words[1] == Self.boolean, words[14] & Self.disabled == 0 else {
            return nil
        }
        let (minimum, maximum) = (Int(Int32(bitPattern: words[10])), Int(Int32(bitPattern: words[11])))
        return CameraControl(
            name: name, minimum: minimum, maximum: maximum,
            choices: isMenu ? choices(minimum, maximum, descriptor) : nil,
            isReadOnly: words[14] & Self.readOnly != 0)
    }

    /// As v4l2src normalises it: in lower case, with an underscore for other characters than letters and digits.
    private var name: String {
        let bytes = words[2..<10].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
        var name = ""
        for byte in bytes.prefix(while: { $0 != 0 }) {
            let letter = Character(UnicodeScalar(byte))
            if letter.isASCII, letter.isLetter || letter.isNumber {
                name += letter.lowercased()
            } else if !name.isEmpty, !name.hasSuffix("_") {
                name += "_"
            }
        }
        return name.hasSuffix("_") ? String(name.dropLast()) : name
    }

    /// The available items of a menu. struct v4l2_querymenu has the control, the index, 32 bytes of name, and one more
    /// word.
    private func choices(_ minimum: Int, _ maximum: Int, _ descriptor: Int32) -> [Int] {
        guard minimum >= 0, minimum <= maximum, maximum < 1024 else { return [] }
        return (minimum...maximum).filter { place in
            var item = [UInt32](repeating: 0, count: 11)
            item[0] = identifier
            item[1] = UInt32(place)
            return ioctl(descriptor, Self.menuRequest, &item) == 0
        }
    }
}
