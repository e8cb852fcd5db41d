internal import Foundation

/// A camera as a file: its description, its behaviour over time, and perhaps some frames. docs/camera-fixtures.md has
/// the format.
package struct CameraFixture: Sendable, Hashable, Codable {
    package var version = 1
    package var driver: String
    package var card: String
    package var bus: String
    package var formats: [Format]
    package var controls: [Control]?
    package var timing: Timing?
    package var quirks: Quirks?
    package var frames: [Frame]?
    package var faults: [Fault]?

    package struct Format: Sendable, Hashable, Codable {
        package var format: FourCC
        package var description: String?
        package var sizes: [Size]
    }

    /// One `size`, or all from `from` to `to`. With `rates`, or any rate from `slowest` to `fastest`.
    package struct Size: Sendable, Hashable, Codable {
        package var size: FrameSize?
        package var from: FrameSize?
        package var to: FrameSize?
        package var step: FrameSize?
        package var rates: [FrameRate]?
        package var slowest: FrameRate?
        package var fastest: FrameRate?
    }

    package struct Control: Sendable, Hashable, Codable {
        package var identifier: UInt32
        package var title: String
        package var kind: DeviceControl.Kind
        /// A button has neither limits nor a standard value.
        package var minimum: Int?
        package var maximum: Int?
        package var step: Int?
        package var standard: Int?
        /// The names of a menu's items by their values.
        package var items: [String: String]?
        package var isReadOnly: Bool?
    }

    /// In seconds.
    package struct Timing: Sendable, Hashable, Codable {
        /// From the start of the stream to the first frame. Without it, a frame time.
        package var firstFrame: Double?

        package init(firstFrame: Double? = nil) {
            self.firstFrame = firstFrame
        }
    }

    package struct Quirks: Sendable, Hashable, Codable {
        /// Rows begin at multiples of this number of bytes.
        package var strideAlignment: Int?
        package var hasNoTimestamps: Bool?
        /// All sequence numbers are 0.
        package var countsNothing: Bool?
    }

    package struct Frame: Sendable, Hashable, Codable {
        package var format: FourCC
        package var size: FrameSize
        /// The bytes of the first plane; base 64 in the file.
        package var data: [UInt8]

        private enum CodingKeys: String, CodingKey { case format, size, data }

        package init(format: FourCC, size: FrameSize, data: [UInt8]) {
            self.format = format
            self.size = size
            self.data = data
        }

        package init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            format = try container.decode(FourCC.self, forKey: .format)
            size = try container.decode(FrameSize.self, forKey: .size)
            data = Array(try container.decode(Data.self, forKey: .data))
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(format, forKey: .format)
            try container.encode(size, forKey: .size)
            try container.encode(Data(data), forKey: .data)
        }
    }

    /// Something that goes wrong, in seconds since the camera was made.
    package struct Fault: Sendable, Hashable, Codable {
        package enum Kind: String, Sendable, Hashable, Encodable, CaseIterable {
            /// The device is gone. Its controls have their standard values when it is back.
            case unplugged
            /// Another program captures: `EBUSY`.
            case busy
            /// No bandwidth is left: a start fails with `ENOSPC`.
            case noBandwidth
            /// No frames, and no error.
            case silent
            /// Frames arrive `by` seconds after their capture.
            case late
            /// Each frame is lost; their numbers are missing.
            case dropping
            /// Frames carry the driver's mark for corrupt data.
            case corrupt
            /// Frames have half of their bytes, without a mark.
            case cut
            /// Timestamps are off `by` seconds.
            case shiftedTime
            /// The rate is `rate`, unless the control `control` has the value `value`.
            case slow
            /// Each stream ends with `EIO`.
            case failing
            /// Setting the control `control`, or any one, fails.
            case refusedControl
            /// At its beginning, the driver sets `control` to `value`.
            case changedControl
            /// At its beginning, the source gets the size `size`.
            case changedSource
        }

        package var fault: Kind
        package var at: Double
        /// Without it, the fault lasts.
        package var until: Double?
        package var by: Double?
        package var rate: FrameRate?
        package var size: FrameSize?
        package var control: String?
        package var value: Int?

        package init(
            _ fault: Kind, at: Double, until: Double? = nil, by: Double? = nil, rate: FrameRate? = nil,
            size: FrameSize? = nil, control: String? = nil, value: Int? = nil
        ) {
            self.fault = fault
            self.at = at
            self.until = until
            self.by = by
            self.rate = rate
            self.size = size
            self.control = control
            self.value = value
        }
    }

}

extension CameraFixture {
    // MARK: As values of the seam

    var offers: [FormatOffer] {
        formats.map { format in
            FormatOffer(
                format.format, description: format.description ?? "",
                sizes: format.sizes.map { size in
                    let range =
                        size.size.map(SizeRange.init)
                        ?? SizeRange(
                            size.from ?? FrameSize(1, 1), size.to ?? FrameSize(1, 1), step: size.step ?? FrameSize(1, 1)
                        )
                    if let slowest = size.slowest, let fastest = size.fastest {
                        return FormatOffer.Size(range, .range(slowest: min(slowest, fastest), fastest: fastest))
                    }
                    return FormatOffer.Size(range, .list(size.rates ?? []))
                })
        }
    }

    var deviceControls: [DeviceControl] {
        (controls ?? []).map { control in
            let items = (control.items ?? [:]).compactMap { value, name in
                Int(value).map { DeviceControl.Item($0, name) }
            }
            return DeviceControl(
                control.identifier, control.title, control.kind, (control.minimum ?? 0)...(control.maximum ?? 0),
                step: control.step ?? 1, standard: control.standard ?? 0, items: items.sorted { $0.value < $1.value },
                isReadOnly: control.isReadOnly ?? false)
        }
    }
}
