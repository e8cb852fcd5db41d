internal import Cameras
import GStreamerKit
public import MediaGraph

extension Devices {
    static func camera(at path: String) -> CameraDevice? {
        let formats = DeviceProbe.formats(of: path)
        guard !formats.isEmpty else { return nil }
        return CameraDevice(
            path: path, name: DeviceProbe.name(of: path), stablePath: DeviceProbe.stablePath(of: path),
            formats: formats)
    }

    /// The camera with this path, name or USB port (see `CameraPlaces`). `auto` is the first one that is not in use.
    ///
    /// - Throws: `camera.absent`; `camera.unusable` for a device that captures no video; or `camera.busy` if it cannot be
    ///   opened or is in use.
    public static func camera(_ device: String) throws(MediaError) -> CameraDevice {
        try choose(device).camera
    }

    /// With `mayReserve`, a camera that another program uses is skipped or refused. The check reserves the camera for a
    /// moment, in which no other program can begin to capture.
    static func choose(_ device: String, mayReserve: Bool = true) throws(MediaError) -> CameraChoice {
        let isAny = device == "auto"
        let paths = isAny ? DeviceProbe.videoDevicePaths() : paths(of: device)
        let choice = try choose(
            among: paths, takesAny: isAny, obstacle: DeviceProbe.openingProblem, camera: camera(at:),
            isTaken: { mayReserve && DeviceProbe.isTaken($0) })
        if let choice { return choice }
        guard !isAny, !paths.isEmpty else { throw absent(device, others: cameras().map(\.path)) }
        throw MediaError(
            code: MediaError.Code.cameraUnusable,
            message: "\(device) is not a camera: it captures no video. Choose one of 'connectlive devices'.")
    }

    /// The devices with a name of `CameraPlace`, or of `CameraPlaces`.
    private static func paths(of device: String) -> [String] {
        let paths = CameraPlaces.system.paths(of: device)
        guard paths.isEmpty, !device.hasPrefix("/") else { return paths }
        return (try? CameraPlace.find(device, among: CameraPlace.all())).map { [$0.path] } ?? []
    }

    /// The first of these devices that captures and can be opened. Nil if none captures. With `takesAny`, one that another
    /// program uses is passed over. Otherwise they are those of one camera, and the next one may be another sensor.
    static func choose(
        among paths: [String], takesAny: Bool, obstacle: (String) -> String?, camera: (String) -> CameraDevice?,
        isTaken: (String) -> Bool
    ) throws(MediaError) -> CameraChoice? {
        var passedOver: [String] = []
        var closed: MediaError?
        for path in paths {
            if let reason = obstacle(path) {
                passedOver.append("\(path) cannot be opened: \(reason)")
                closed = closed ?? cannotOpen(path, reason)
            } else if let found = camera(path) {
                guard isTaken(path) else { return (found, passedOver) }
                let busy = cannotOpen(path, "another program uses it")
                guard takesAny else { throw busy }
                passedOver.append("\(path) (\(found.name)) is used by another program")
                closed = closed ?? busy
            }
        }
        if let closed { throw closed }
        return nil
    }

    private static func cannotOpen(_ device: String, _ reason: String) -> MediaError {
        guard exists(device) else { return absent(device) }
        return MediaError(
            code: MediaError.Code.cameraBusy,
            message: "The camera \(device) cannot be opened: \(reason). Close the program that uses it, or join the "
                + "group video.")
    }

    /// Whether an error says that a camera is not there, or in use, and may be there later.
    static func isAway(_ error: MediaError) -> Bool {
        error.code == MediaError.Code.cameraAbsent || error.code == MediaError.Code.cameraBusy
    }

    static func exists(_ device: String) -> Bool {
        device == "auto" || DeviceProbe.exists(device)
    }

    static func absent(_ device: String, others: [String] = []) -> MediaError {
        let what = device == "auto" ? "No camera was found" : "The camera \(device) does not exist"
        let instead = others.isEmpty ? "" : "Use \(others.joined(separator: " or ")). "
        return MediaError(
            code: MediaError.Code.cameraAbsent,
            message: "\(what). \(instead)Plug one in, or use the test pattern or a file: test-pattern or file in a "
                + "graph, --test-pattern or --file with publish.")
    }
}
