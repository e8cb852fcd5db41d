internal import Glibc
package import MediaGraph

extension MediaError {
    /// The error of a call on a camera, such as `VIDIOC_STREAMON`, `open` or `mmap`, by the call and its `errno`.
    ///
    /// - Parameter control: the control that the call is about, with the value that it should get, such as `brightness=9`.
    package init(_ call: String, _ number: Int32, on device: String, control: String? = nil) {
        let code: String
        let sentence: String
        switch (call, number) {
        case ("open", ENOENT), ("open", ENOTDIR):
            code = Code.cameraAbsent
            sentence = "does not exist. Plug it in, or choose one of 'connectlive devices'."
        case (_, ENODEV), (_, ENXIO):
            code = call == "open" ? Code.cameraAbsent : Code.cameraLost
            sentence = "was unplugged. Plug it in again."
        case ("open", EACCES), ("open", EPERM):
            code = Code.cameraDenied
            sentence = "cannot be opened: this user may not. Join the group video, and sign in again."
        case ("VIDIOC_QUERYCAP", ENOTTY), ("VIDIOC_QUERYCAP", EINVAL):
            code = Code.cameraUnusable
            sentence = "is not a camera: it does not understand V4L2. Choose one of 'connectlive devices'."
        case ("VIDIOC_S_EXT_CTRLS", _), ("VIDIOC_G_EXT_CTRLS", _):
            code = Code.cameraControl
            let subject = control.map { "the control \($0)" } ?? "a control"
            sentence = "refused \(subject): \(Self.reason(number)). Choose another value."
        case (_, EBUSY):
            code = Code.cameraBusy
            sentence = "is in use by another program. Close that program."
        case ("VIDIOC_STREAMON", ENOSPC):
            code = Code.cameraBandwidth
            sentence =
                "does not fit on its bus beside the other devices: no bandwidth is left. Choose a smaller size, a lower "
                + "rate or MJPG, or plug it into another USB controller."
        case ("VIDIOC_DQBUF", _):
            code = Code.cameraLost
            sentence = "stopped delivering frames: \(Self.reason(number)). Check that it is plugged in."
        case ("VIDIOC_S_FMT", EINVAL), ("VIDIOC_S_PARM", EINVAL):
            code = Code.cameraNoMode
            sentence = "refused the mode. Choose another size, rate or format."
        default:
            code = Code.cameraFailed
            sentence = "failed in \(call): \(Self.reason(number)). Plug it in again, or choose another mode."
        }
        self.init(code: code, message: "The camera \(device) \(sentence)", cause: "\(call): \(Self.words(number))")
    }

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
