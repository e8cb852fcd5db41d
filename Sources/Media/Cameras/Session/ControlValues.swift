package import MediaGraph

/// Values for controls of a camera, by their names.
package struct ControlValues: Sendable, Hashable {
    package struct Value: Sendable, Hashable {
        package let name: String
        package let value: Int
    }

    /// In the order in which to set them: some controls depend on others.
    package private(set) var values: [Value] = []

    package init() {}

    /// Parses `auto_exposure=1,focus_absolute=30`. Throws `camera.control` for other forms.
    package init(_ text: String) throws(MediaError) {
        for part in text.split(separator: ",") {
            guard let match = part.wholeMatch(of: #/ *([A-Za-z0-9_]+) *= *([+\-A-Za-z0-9]+) */#),
                let value = Self.number(match.2)
            else {
                throw Self.refused(
                    "\"\(part.drop { $0 == " " })\" is not a control with a value. Write name=number, such as "
                        + "auto_exposure=1,focus_absolute=30.")
            }
            values.append(Value(name: match.1.lowercased(), value: value))
        }
    }

    package mutating func set(_ name: String, to value: Int) {
        values.removeAll { $0.name == name }
        values.append(Value(name: name, value: value))
    }

    package mutating func merge(_ other: ControlValues) {
        for value in other.values { set(value.name, to: value.value) }
    }

    /// These values and then the others, which replace those of the same name.
    package func merging(_ other: ControlValues) -> ControlValues {
        var all = self
        all.merge(other)
        return all
    }

    package mutating func remove(_ name: String) { values.removeAll { $0.name == name } }

    private static func number(_ text: Substring) -> Int? {
        switch text.lowercased() {
        case "true", "yes", "on": 1
        case "false", "no", "off": 0
        default: Int(text)
        }
    }

    /// Throws `camera.control` for a missing control and for an invalid value, which the kernel would silently replace
    /// by the closest valid one.
    package func check(_ there: [DeviceControl], of camera: String) throws(MediaError) {
        for value in values { _ = try value.control(among: there, of: camera) }
    }

    fileprivate static func refused(_ message: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraControl, message: message)
    }
}

extension ControlValues.Value {
    /// The control, which takes the value.
    func control(among there: [DeviceControl], of camera: String) throws(MediaError) -> DeviceControl {
        guard let control = there.first(where: { $0.name == name }) else {
            let names = there.filter { !$0.isReadOnly }.map(\.name)
            throw ControlValues.refused(
                "The camera \(camera) has no control \(name)"
                    + (names.isEmpty
                        ? ", nor any other that can be set. Leave it out."
                        : name.nearest(among: names).map {
                            "; did you mean \($0)? 'connectlive devices' lists its controls."
                        }
                            ?? ", only \(names.joined(separator: ", ")). Choose one of these."))
        }
        if control.isReadOnly {
            throw ControlValues.refused("The control \(name) of the camera \(camera) is read-only. Leave it out.")
        }
        if !control.takes(value) {
            throw ControlValues.refused(
                "The control \(name) of the camera \(camera) must be \(control.range), not \(value). Set another value."
            )
        }
        return control
    }
}

extension DeviceControl {
    /// "from 0 to 255", or "1, 3 or 4" for a menu with gaps.
    fileprivate var range: String {
        guard kind == .menu || kind == .integerMenu, items.count - 1 != maximum &- minimum,
            let last = items.last?.value
        else { return "from \(minimum) to \(maximum)" + (step == 1 ? "" : " in steps of \(step)") }
        return items.count == 1
            ? "\(last)" : items.dropLast().map { "\($0.value)" }.joined(separator: ", ") + " or \(last)"
    }
}
