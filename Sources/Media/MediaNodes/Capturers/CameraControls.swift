import MediaGraph

/// What of a camera's own controls a node sets, by their names.
struct CameraControls: Equatable {
    /// Those that have settings of their own; the names are V4L2's.
    static let names = ["brightness", "contrast", "saturation", "hue"]

    /// In the order in which they are to be set: some can be set only after others.
    private(set) var values: [(name: String, value: Int)] = []

    static func == (first: Self, second: Self) -> Bool {
        first.values.elementsEqual(second.values) { $0 == $1 }
    }

    init(_ name: String, _ value: Int) { values = [(name, value)] }

    /// From `exposure_auto=1,focus_absolute=30`. Throws `camera.control` for what is not of this form.
    init(_ text: String) throws(MediaError) {
        for part in text.split(separator: ",") {
            let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(Self.trimmed)
            guard words.count == 2, let value = Self.number(words[1]), !words[0].isEmpty,
                words[0].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
            else {
                throw MediaError(
                    code: MediaError.Code.cameraControl,
                    message: "\"\(Self.trimmed(part))\" is no control of a camera with its value; write "
                        + "name=number, such as exposure_auto=1,focus_absolute=30.")
            }
            values.append((words[0].lowercased(), value))
        }
    }

    /// What a node asks for, its own settings first.
    init(_ request: NodeRequest) throws(MediaError) {
        if request.isGiven("controls") { self = try Self(request.text("controls")) }
        let own = Self.names.compactMap { name in
            request.isGiven(name) ? request.integer(name).map { (name: name, value: $0) } : nil
        }
        values = own + values
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let start = text.drop { $0 == " " }
        return String(start.reversed().drop { $0 == " " }.reversed())
    }

    private static func number(_ text: String) -> Int? {
        switch text.lowercased() {
        case "true", "yes", "on": 1
        case "false", "no", "off": 0
        default: Int(text)
        }
    }

    /// As v4l2src takes them: a structure of whatever name. Its own properties for four of them do nothing before the
    /// device is open, and what it is given here waits until then. nil when nothing is to be set.
    var structure: SettingValue? {
        values.isEmpty
            ? nil : .text("controls," + values.map { "\($0.name)=(int)\($0.value)" }.joined(separator: ","))
    }

    /// Throws `camera.control` for a control that the camera does not have, and for a value that it would not take: the
    /// kernel takes the nearest that it can, without a word.
    func check(_ there: [CameraControl], of camera: String) throws(MediaError) {
        for (name, value) in values {
            guard let control = there.first(where: { $0.name == name }) else {
                let names = there.filter { !$0.isReadOnly }.map(\.name).joined(separator: ", ")
                throw Self.refused(
                    "The camera \(camera) has no control \(name)"
                        + (names.isEmpty
                            ? ", nor any other that can be set; leave it out."
                            : ", only \(names); choose one of these."))
            }
            if control.isReadOnly {
                throw Self.refused("\(name) of the camera \(camera) can be read, not set; leave it out.")
            }
            if !control.takes(value) {
                throw Self.refused(
                    "\(name) of the camera \(camera) takes \(control.range), not \(value); give another value.")
            }
        }
    }

    private static func refused(_ message: String) -> MediaError {
        MediaError(code: MediaError.Code.cameraControl, message: message)
    }
}

extension CameraControl {
    /// "from 0 to 255", or "1, 3 or 4" where a menu has gaps.
    fileprivate var range: String {
        guard let choices, choices.count != maximum - minimum + 1, let last = choices.last else {
            return "from \(minimum) to \(maximum)"
        }
        return choices.count == 1
            ? "\(last)" : choices.dropLast().map(String.init).joined(separator: ", ") + " or \(last)"
    }
}
