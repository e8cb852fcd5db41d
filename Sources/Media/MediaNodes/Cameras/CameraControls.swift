import MediaGraph

/// The camera controls that a node sets, by name.
struct CameraControls {
    /// Controls with their own settings. The names are V4L2's.
    static let names = ["brightness", "contrast", "saturation", "hue"]

    /// In the order in which to set them: some controls depend on others.
    private(set) var values: [(name: String, value: Int)] = []

    /// Parses `exposure_auto=1,focus_absolute=30`. Throws `camera.control` for other forms.
    init(_ text: String) throws(MediaError) {
        for part in text.split(separator: ",") {
            guard let match = part.wholeMatch(of: #/ *([A-Za-z0-9_]+) *= *([+\-A-Za-z0-9]+) */#),
                let value = Self.number(match.2)
            else {
                throw MediaError(
                    code: MediaError.Code.cameraControl,
                    message: "\"\(part.drop { $0 == " " })\" is not a control with a value. Write name=number, such as "
                        + "exposure_auto=1,focus_absolute=30.")
            }
            values.append((match.1.lowercased(), value))
        }
    }

    /// The controls of a node's settings, its own settings first.
    init(_ request: NodeRequest) throws(MediaError) {
        if request.isGiven("controls") { self = try Self(request.text("controls")) }
        let own = Self.names.compactMap { name in
            request.optionalInteger(name).map { (name: name, value: $0) }
        }
        values = own + values
    }

    private static func number(_ text: Substring) -> Int? {
        switch text.lowercased() {
        case "true", "yes", "on": 1
        case "false", "no", "off": 0
        default: Int(text)
        }
    }

    /// As a structure for v4l2src. Its own properties for four controls do nothing before the device is open, but this
    /// waits until then. Nil without controls.
    var structure: SettingValue? {
        values.isEmpty
            ? nil : .text("controls," + values.map { "\($0.name)=(int)\($0.value)" }.joined(separator: ","))
    }

    /// Throws `camera.control` for a missing control and for an invalid value, which the kernel would silently replace
    /// by the closest valid one.
    func check(_ there: [CameraControl], of camera: String) throws(MediaError) {
        for (name, value) in values {
            guard let control = there.first(where: { $0.name == name }) else {
                let names = there.filter { !$0.isReadOnly }.map(\.name).joined(separator: ", ")
                throw Self.refused(
                    "The camera \(camera) has no control \(name)"
                        + (names.isEmpty
                            ? ", nor any other that can be set. Leave it out."
                            : ", only \(names). Choose one of these."))
            }
            if control.isReadOnly {
                throw Self.refused("The control \(name) of the camera \(camera) is read-only. Leave it out.")
            }
            if !control.takes(value) {
                throw Self.refused(
                    "The control \(name) of the camera \(camera) must be \(control.range), not \(value). Set another "
                        + "value.")
            }
        }
    }

    private static func refused(_ message: String) -> MediaError {
        MediaError(code: MediaError.Code.cameraControl, message: message)
    }
}

extension CameraControl {
    /// "from 0 to 255", or "1, 3 or 4" for a menu with gaps.
    fileprivate var range: String {
        guard let choices, choices.count != maximum - minimum + 1, let last = choices.last else {
            return "from \(minimum) to \(maximum)"
        }
        return choices.count == 1
            ? "\(last)" : choices.dropLast().map(String.init).joined(separator: ", ") + " or \(last)"
    }
}
