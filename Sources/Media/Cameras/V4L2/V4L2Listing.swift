internal import CV4L2
internal import Glibc
internal import MediaGraph

extension V4L2Descriptor {
    /// The longest list that is read from a driver, which may not end its list.
    private static let longest: UInt32 = 512

    // MARK: Formats

    func formats(_ type: UInt32) throws(MediaError) -> [FormatOffer] {
        var offers: [FormatOffer] = []
        for index in 0..<Self.longest {
            var found = cv4l2_format()
            let result = cv4l2_format(number, type, index, &found)
            if result == -EINVAL { break }
            try check("VIDIOC_ENUM_FMT", result)
            let format = FourCC(code: found.code)
            offers.append(
                FormatOffer(
                    format, description: text(of: found.name), isEmulated: found.is_emulated != 0,
                    sizes: try sizes(of: format, type)))
        }
        return offers
    }

    private func sizes(of format: FourCC, _ type: UInt32) throws(MediaError) -> [FormatOffer.Size] {
        var sizes: [FormatOffer.Size] = []
        for index in 0..<Self.longest {
            var found = cv4l2_sizes()
            let result = cv4l2_sizes(number, format.code, index, &found)
            if result == -EINVAL, index > 0 { break }
            // Drivers without a list: grabbers, sensors. They have the size that is set.
            if result == -ENOTTY || result == -EINVAL { return try currentSize(of: format, type).map { [$0] } ?? [] }
            try check("VIDIOC_ENUM_FRAMESIZES", result)
            let range = SizeRange(
                FrameSize(Int(found.min_width), Int(found.min_height)),
                FrameSize(Int(found.max_width), Int(found.max_height)),
                step: FrameSize(Int(found.step_width), Int(found.step_height)))
            guard let range = range.usable else { continue }
            sizes.append(FormatOffer.Size(range, try rates(of: format, range.largest)))
        }
        return sizes
    }

    private func currentSize(of format: FourCC, _ type: UInt32) throws(MediaError) -> FormatOffer.Size? {
        var layout = cv4l2_layout()
        try check("VIDIOC_G_FMT", cv4l2_get_layout(number, type, &layout))
        guard let range = SizeRange(FrameSize(Int(layout.width), Int(layout.height))).usable else { return nil }
        return FormatOffer.Size(range, try rates(of: format, range.largest))
    }

    private func rates(of format: FourCC, _ size: FrameSize) throws(MediaError) -> RateOffer {
        var rates: [FrameRate] = []
        for index in 0..<Self.longest {
            var found = cv4l2_intervals()
            let result = cv4l2_intervals(
                number, format.code, UInt32(clamping: size.width), UInt32(clamping: size.height), index, &found)
            if result == -EINVAL || result == -ENOTTY { break }
            try check("VIDIOC_ENUM_FRAMEINTERVALS", result)
            guard let fastest = FrameRate(interval: found.min), let slowest = FrameRate(interval: found.max) else {
                continue
            }
            if slowest != fastest { return .range(slowest: slowest, fastest: fastest) }
            if !rates.contains(fastest) { rates.append(fastest) }
        }
        return .list(rates)
    }

    // MARK: Controls

    func controls() throws(MediaError) -> [DeviceControl] {
        var controls: [DeviceControl] = []
        var identifier: UInt32 = 0
        for _ in 0..<Self.longest {
            var found = cv4l2_control()
            let result = cv4l2_next_control(number, identifier, &found)
            // ENOTTY: a device without controls.
            if result == -EINVAL || result == -ENOTTY { break }
            try check("VIDIOC_QUERY_EXT_CTRL", result)
            guard found.identifier > identifier else { break }
            identifier = found.identifier
            if let control = control(found) { controls.append(control) }
        }
        return controls
    }

    /// V4L2_CTRL_FLAG_DISABLED, _READ_ONLY and _INACTIVE.
    private static let (disabled, readOnly, inactive): (UInt32, UInt32, UInt32) = (0x1, 0x4, 0x10)

    private func control(_ found: cv4l2_control) -> DeviceControl? {
        guard found.flags & Self.disabled == 0, found.has_payload == 0, let kind = DeviceControl.Kind(type: found.type)
        else { return nil }
        // A bitmask's limits are unsigned words of 32 bits.
        let maximum = kind == .bitmask ? Int(UInt32(truncatingIfNeeded: found.maximum)) : Int(found.maximum)
        let minimum = min(Int(found.minimum), maximum)
        return DeviceControl(
            found.identifier, text(of: found.name), kind, minimum...maximum, step: Int(clamping: found.step),
            standard: kind == .bitmask
                ? Int(UInt32(truncatingIfNeeded: found.default_value)) : Int(found.default_value),
            items: kind == .menu || kind == .integerMenu
                ? items(of: found.identifier, kind, minimum, maximum) : [],
            isReadOnly: found.flags & Self.readOnly != 0, isInactive: found.flags & Self.inactive != 0)
    }

    private func items(of identifier: UInt32, _ kind: DeviceControl.Kind, _ first: Int, _ last: Int)
        -> [DeviceControl.Item]
    {
        (max(first, 0)...max(min(last, Int(Self.longest)), first, 0)).compactMap { index in
            var name = [CChar](repeating: 0, count: 33)
            var value: Int64 = 0
            guard let place = UInt32(exactly: index), cv4l2_menu_item(number, identifier, place, &name, &value) >= 0
            else { return nil }
            let letters = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return DeviceControl.Item(
                index, kind == .integerMenu ? "\(value)" : String(decoding: letters, as: UTF8.self))
        }
    }
}

extension DeviceControl.Kind {
    /// `enum v4l2_ctrl_type`. Nil for headings, texts and compound types.
    fileprivate init?(type: UInt32) {
        switch type {
        case 1: self = .integer
        case 2: self = .boolean
        case 3: self = .menu
        case 4: self = .button
        case 5: self = .wideInteger
        case 8: self = .bitmask
        case 9: self = .integerMenu
        default: return nil
        }
    }
}

extension FrameRate {
    /// The rate of an interval in seconds. Nil for zero.
    init?(interval: cv4l2_fraction) {
        guard interval.numerator > 0, interval.denominator > 0 else { return nil }
        self.init(Int(interval.denominator), per: Int(interval.numerator))
    }
}

extension CaptureLayout {
    /// `V4L2_FIELD_NONE`
    private static let progressiveField: UInt32 = 1

    init(of found: cv4l2_layout, rate: FrameRate?) {
        let (strides, bytes) = (found.strides, found.bytes)
        let planes = withUnsafeBytes(of: strides) { strides in
            withUnsafeBytes(of: bytes) { bytes in
                let (strides, bytes) = (strides.bindMemory(to: UInt32.self), bytes.bindMemory(to: UInt32.self))
                return (0..<Int(found.plane_count)).map { Plane(stride: Int(strides[$0]), bytes: Int(bytes[$0])) }
            }
        }
        self.init(
            CaptureMode(FourCC(code: found.code), FrameSize(Int(found.width), Int(found.height)), rate),
            isProgressive: found.field == Self.progressiveField, planes: planes)
    }
}

/// A C text in a fixed array.
func text<Letters>(of letters: Letters) -> String {
    withUnsafeBytes(of: letters) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}
