/// A control of a camera that has an integer value, or none (`VIDIOC_QUERY_EXT_CTRL`). Texts, arrays and structures are
/// not listed.
package struct DeviceControl: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable, Encodable, CaseIterable {
        case integer, boolean
        /// A choice of names.
        case menu
        /// A choice of numbers, which are the names of the items.
        case integerMenu
        /// Starts an action when it is set to any value. It has no value of its own.
        case button
        /// Bits that can be set separately.
        case bitmask
        /// An integer of 64 bits.
        case wideInteger
    }

    /// An available item of a menu.
    package struct Item: Sendable, Hashable {
        package let value: Int
        package let name: String

        package init(_ value: Int, _ name: String) {
            self.value = value
            self.name = name.cleaned
        }
    }

    /// `V4L2_CID_…`
    package let identifier: UInt32
    /// The driver's name, such as `White Balance Temperature`.
    package let title: String
    package let kind: Kind
    package let minimum: Int
    package let maximum: Int
    /// The distance between neighbouring values, at least 1.
    package let step: Int
    package let standard: Int
    /// The items of a menu, possibly with gaps between their values; empty for other kinds.
    package let items: [Item]
    /// Never changeable (`V4L2_CTRL_FLAG_READ_ONLY`).
    package let isReadOnly: Bool
    /// Without effect now, because another control overrides it (`V4L2_CTRL_FLAG_INACTIVE`): an exposure time while the
    /// exposure is automatic.
    package var isInactive: Bool

    package init(
        _ identifier: UInt32, _ title: String, _ kind: Kind, _ range: ClosedRange<Int>, step: Int = 1, standard: Int,
        items: [Item] = [], isReadOnly: Bool = false, isInactive: Bool = false
    ) {
        self.identifier = identifier
        self.title = title.cleaned
        self.kind = kind
        minimum = range.lowerBound
        maximum = range.upperBound
        self.step = max(step, 1)
        self.standard = standard
        self.items = items
        self.isReadOnly = isReadOnly
        self.isInactive = isInactive
    }

    /// The title in lower case, with an underscore for other characters than letters and digits:
    /// `white_balance_temperature`. v4l2-ctl and GStreamer use the same names.
    package var name: String {
        var name = ""
        for letter in title {
            if letter.isASCII, letter.isLetter || letter.isNumber {
                name += letter.lowercased()
            } else if !name.isEmpty, !name.hasSuffix("_") {
                name += "_"
            }
        }
        return name.hasSuffix("_") ? String(name.dropLast()) : name
    }

    /// Whether the value is in the range, on a step, and one of the menu's.
    package func takes(_ value: Int) -> Bool {
        if isReadOnly { return false }
        switch kind {
        case .button: return true
        case .menu, .integerMenu: return items.contains { $0.value == value }
        case .bitmask: return value >= 0 && UInt(bitPattern: value) & ~UInt(bitPattern: maximum) == 0
        case .integer, .boolean, .wideInteger:
            guard value >= minimum, value <= maximum else { return false }
            let (distance, isTooFar) = value.subtractingReportingOverflow(minimum)
            return isTooFar || distance % step == 0
        }
    }

    /// The unit of the value, for controls of V4L2's reference that have one.
    package var unit: String? { Self.units[identifier] }

    /// "Control Reference" of the kernel's documentation.
    private static let units: [UInt32: String] = [
        0x0098_091a: "K",  // V4L2_CID_WHITE_BALANCE_TEMPERATURE
        0x0098_0922: "degrees",  // V4L2_CID_ROTATE
        0x009a_0902: "100 µs",  // V4L2_CID_EXPOSURE_ABSOLUTE
        0x009a_0904: "arcseconds",  // V4L2_CID_PAN_RELATIVE
        0x009a_0905: "arcseconds",  // V4L2_CID_TILT_RELATIVE
        0x009a_0908: "arcseconds",  // V4L2_CID_PAN_ABSOLUTE
        0x009a_0909: "arcseconds",  // V4L2_CID_TILT_ABSOLUTE
        0x009a_0913: "0.001 EV",  // V4L2_CID_AUTO_EXPOSURE_BIAS
        0x009a_0917: "0.001 ISO",  // V4L2_CID_ISO_SENSITIVITY
        0x009e_0901: "lines",  // V4L2_CID_VBLANK
        0x009e_0902: "pixels",  // V4L2_CID_HBLANK
        0x009f_0901: "Hz",  // V4L2_CID_LINK_FREQ
        0x009f_0902: "pixels/s",  // V4L2_CID_PIXEL_RATE
        0x0099_09cb: "frames",  // V4L2_CID_MPEG_VIDEO_GOP_SIZE
        0x0099_09cf: "bit/s",  // V4L2_CID_MPEG_VIDEO_BITRATE
        0x0099_09d0: "bit/s",  // V4L2_CID_MPEG_VIDEO_BITRATE_PEAK
        0x009d_0903: "%",  // V4L2_CID_JPEG_COMPRESSION_QUALITY
    ]
}
