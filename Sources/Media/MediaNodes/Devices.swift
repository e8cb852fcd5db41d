internal import GStreamerKit
public import MediaGraph

/// What is plugged in now. All of it blocks for some milliseconds, longer when a camera is slow to answer.
public enum Devices {
    public static func list() -> DeviceList {
        let sound = DeviceProbe.soundDevices()
        return DeviceList(
            cameras: cameras(), microphones: sound.sources.map(AudioDevice.init),
            speakers: sound.sinks.map(AudioDevice.init))
    }

    public static func cameras() -> [CameraDevice] {
        DeviceProbe.videoDevicePaths().compactMap { path in
            let formats = DeviceProbe.formats(of: path).map(CameraFormat.init)
            guard !formats.isEmpty else { return nil }
            return CameraDevice(
                path: path, name: DeviceProbe.name(of: path), stablePath: DeviceProbe.stablePath(of: path),
                formats: formats)
        }
    }

    public static func firstCamera() -> CameraDevice? {
        for path in DeviceProbe.videoDevicePaths() {
            if let camera = camera(at: path) { return camera }
        }
        return nil
    }

    public static func firstMicrophone() -> AudioDevice? {
        let microphones = DeviceProbe.soundDevices().sources.map(AudioDevice.init)
        return microphones.first { $0.isDefault } ?? microphones.first
    }

    private static func camera(at path: String) -> CameraDevice? {
        let formats = DeviceProbe.formats(of: path).map(CameraFormat.init)
        guard !formats.isEmpty else { return nil }
        return CameraDevice(
            path: path, name: DeviceProbe.name(of: path), stablePath: DeviceProbe.stablePath(of: path),
            formats: formats)
    }

    /// The camera of this path (or of a link to it), or the first when it is `auto`.
    ///
    /// Throws `camera.absent`, or `camera.busy` when the device is there and may not be opened.
    public static func camera(_ device: String) throws(MediaError) -> CameraDevice {
        if device == "auto" {
            if let first = firstCamera() { return first }
            let closed = DeviceProbe.videoDevicePaths().lazy.compactMap { path in
                DeviceProbe.openingProblem(of: path).map { cannotOpen(path, $0) }
            }
            throw closed.first ?? absent(device)
        }
        guard exists(device) else { throw absent(device, others: cameras().map(\.path)) }
        if let found = camera(at: device) { return found }
        if let reason = DeviceProbe.openingProblem(of: device) { throw cannotOpen(device, reason) }
        throw MediaError(
            code: MediaError.Code.cameraAbsent,
            message: "\(device) is not a camera: it captures no video; choose one that is listed.")
    }

    private static func cannotOpen(_ device: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraBusy,
            message: "The camera \(device) cannot be opened (\(reason)); close the program that uses it, or join "
                + "the group video.")
    }

    static func exists(_ device: String) -> Bool {
        device == "auto" || DeviceProbe.exists(device)
    }

    static func absent(_ device: String, others: [String] = []) -> MediaError {
        let what = device == "auto" ? "No camera was found" : "There is no camera \(device)"
        let instead = others.isEmpty ? "" : "take \(others.joined(separator: " or ")), "
        return MediaError(
            code: MediaError.Code.cameraAbsent,
            message: "\(what); \(instead)plug one in, or publish a file or the test pattern.")
    }
}

extension CameraFormat {
    init(_ format: DeviceProbe.Format) {
        self.init(
            pixelFormat: format.pixelFormat, width: format.width, height: format.height,
            framesPerSecond: format.framesPerSecond)
    }
}

extension AudioDevice {
    init(_ device: DeviceProbe.SoundDevice) {
        self.init(identifier: device.identifier, name: device.name, isDefault: device.isDefault)
    }
}
