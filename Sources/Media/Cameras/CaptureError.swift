internal import Glibc

/// An error of a camera: a refused call, or a device that is gone.
///
/// `code` is stable and listed in docs/errors.md; `message` is one sentence for people.
package struct CaptureError: Error, Sendable, Hashable, CustomStringConvertible {
    package let code: String
    package let message: String
    /// The call that failed, such as `VIDIOC_STREAMON`; `open` and `mmap` too.
    package let call: String
    /// The call's `errno`.
    package let number: Int32

    package var description: String { "\(message) [\(code)]" }

    package init(code: String, call: String, number: Int32, _ message: String) {
        self.code = code
        self.message = message
        self.call = call
        self.number = number
    }

    /// The error of a call on a device, by the call and its `errno`.
    package init(_ call: String, _ number: Int32, on device: String) {
        let code: String
        let sentence: String
        switch (call, number) {
        case ("open", ENOENT), ("open", ENOTDIR):
            code = Code.absent
            sentence = "does not exist. Plug it in, or choose one of 'connectlive devices'."
        case (_, ENODEV), (_, ENXIO):
            code = call == "open" ? Code.absent : Code.lost
            sentence = "was unplugged. Plug it in again."
        case ("open", EACCES), ("open", EPERM):
            code = Code.denied
            sentence = "cannot be opened: this user may not. Join the group video, and sign in again."
        case ("VIDIOC_QUERYCAP", ENOTTY), ("VIDIOC_QUERYCAP", EINVAL):
            code = Code.unusable
            sentence = "is not a camera: it does not understand V4L2. Choose one of 'connectlive devices'."
        case ("VIDIOC_S_EXT_CTRLS", _), ("VIDIOC_G_EXT_CTRLS", _):
            code = Code.control
            sentence = "refused a control: \(Self.reason(number)). Choose another value."
        case (_, EBUSY):
            code = Code.busy
            sentence = "is in use by another program. Close that program."
        case ("VIDIOC_STREAMON", ENOSPC):
            code = Code.bandwidth
            sentence =
                "does not fit on its bus beside the other devices: no bandwidth is left. Choose a smaller size, a lower "
                + "rate or MJPG, or plug it into another USB controller."
        case ("VIDIOC_DQBUF", _):
            code = Code.lost
            sentence = "stopped delivering frames: \(Self.reason(number)). Check that it is plugged in."
        case ("VIDIOC_S_FMT", EINVAL), ("VIDIOC_S_PARM", EINVAL):
            code = Code.noMode
            sentence = "refused the mode. Choose another size, rate or format."
        default:
            code = Code.failed
            sentence = "failed in \(call): \(Self.reason(number)). Plug it in again, or choose another mode."
        }
        self.init(code: code, call: call, number: number, "The camera \(device) \(sentence)")
    }

    package enum Code {
        package static let absent = "camera.absent"
        package static let unusable = "camera.unusable"
        package static let denied = "camera.denied"
        package static let busy = "camera.busy"
        package static let lost = "camera.lost"
        package static let changed = "camera.changed"
        package static let bandwidth = "camera.bandwidth"
        package static let noMode = "camera.no-mode"
        package static let control = "camera.control"
        package static let failed = "camera.failed"
        package static let silent = "camera.silent"
        package static let fixture = "camera.fixture"
        package static let binding = "camera.binding"
    }

    /// Whether the camera is not there, so that it may come later by itself.
    package var isAbsence: Bool { code == Code.absent }

    private static func reason(_ number: Int32) -> String {
        switch number {
        case EIO: "an input or output error of the device or its cable (EIO)"
        case EPIPE, EPROTO, ETIMEDOUT: "the device did not answer (\(words(number)))"
        case ERANGE: "the value is out of range"
        case EACCES: "it is read-only"
        case ENOMEM: "no memory is left for its buffers"
        default: words(number)
        }
    }

    private static func words(_ number: Int32) -> String {
        // strerror_r's two forms differ between libraries; strerror's table of known numbers never changes.
        String(cString: strerror(number)).lowercased()
    }
}
