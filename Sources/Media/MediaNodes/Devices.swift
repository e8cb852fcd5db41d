internal import Cameras
internal import GStreamerKit
public import MediaGraph

/// The devices that are plugged in. All calls block for milliseconds, or longer if a camera responds slowly.
public enum Devices {
    /// Microphones and loudspeakers of the first sound system that has any.
    /// None if the sound server does not respond within three seconds.
    public static func sound() -> (microphones: [AudioDevice], speakers: [AudioDevice]) {
        let found = soundDevices().devices
        return (found?.microphones ?? [], found?.speakers ?? [])
    }

    /// The devices of the first sound system that has any, or a sentence about a sound server that hangs.
    package static func soundDevices() -> (devices: SoundDevices?, problem: String?) {
        switch SoundSearch.search(nil) {
        case .devices(let found): (found, nil)
        case .none: (nil, nil)
        case .late:
            (nil, "The sound server did not respond within \(Int(AudioSystem.timeout)) s. Restart the sound server.")
        }
    }

    /// Whether a sound system has devices, or one that hangs may have some.
    package static var hasSoundSystem: Bool {
        if case .none = SoundSearch.search(nil) { false } else { true }
    }

    /// The cameras of libcamera. Empty without its GStreamer plugin.
    public static func libraryCameras() -> [LibraryCamera] {
        DeviceProbe.libraryCameras().map { LibraryCamera($0.name, $0.formats) }
    }

    /// Whether cameras of libcamera can be opened.
    package static var hasLibCamera: Bool { SystemEnvironment().hasElement(LibCamera.factory) }

    /// Checks that the camera of a node is there, as far as can be told without capturing. That of libcamera shows when it is
    /// opened.
    ///
    /// - Throws: the errors of `camera`; `element.missing` without the plugin of a camera of libcamera.
    package static func checkCamera(_ device: String) throws(MediaError) {
        let machine = SystemEnvironment()
        if let camera = LibCamera(device) { return try camera.checkPlugin(machine) }
        do throws(MediaError) {
            _ = try camera(device)
        } catch {
            guard LibCamera.replaces(device, after: error, machine) else { throw error }
        }
    }

    /// The camera of the place `front` or `back`: see `CameraSystem.camera(at:)`.
    package static func camera(at place: String) throws(MediaError) -> String? {
        try CameraSystem.machine.camera(at: place)
    }

    /// Whether this user may open a camera, as far as can be told without capturing. True without a camera.
    package static var mayOpenCameras: Bool {
        let places = CameraSystem.machine.places()
        return places.isEmpty
            || places.contains { place in
                do throws(MediaError) {
                    try CameraSystem.machine.open(place).close()
                    return true
                } catch {
                    return error.code != MediaError.Code.cameraDenied
                }
            }
    }

    /// The default microphone, else the first one. Nil without one. Blocks for milliseconds, or up to 3 s if a sound
    /// server does not respond.
    public static func firstMicrophone() -> AudioDevice? {
        let microphones = sound().microphones
        return microphones.first { $0.isDefault } ?? microphones.first
    }
}

/// A camera of libcamera, such as a Raspberry Pi's.
public struct LibraryCamera: Sendable, Hashable, Codable {
    /// For the `device` of a camera node, such as `libcamera:/base/soc/i2c0mux/i2c@1/imx219@10`.
    public let name: String
    /// The pixel formats with their sizes, such as `NV12 640x480, 1920x1080` or `NV12 32x32 to 3280x2464`. Empty if libcamera
    /// tells them only when it opens the camera.
    public let modes: [String]

    /// - Parameter formats: as libcamera's device provider states them.
    init(_ identifier: String, _ formats: Caps?) {
        name = "\(LibCamera.prefix):\(identifier)"
        var sizes: [(format: String, sizes: [String])] = []
        for structure in formats?.structures ?? [] {
            let (widths, heights) = (structure.integers("width"), structure.integers("height"))
            guard let format = structure.text("format") ?? structure.name.split(separator: "/").last.map(String.init),
                let width = widths.first, let height = heights.first, let last = widths.last, let highest = heights.last
            else { continue }
            let size = "\(width)x\(height)" + (widths.count > 1 ? " to \(last)x\(highest)" : "")
            if let place = sizes.firstIndex(where: { $0.format == format }) {
                if !sizes[place].sizes.contains(size) { sizes[place].sizes.append(size) }
            } else {
                sizes.append((format, [size]))
            }
        }
        modes = sizes.map { "\($0.format) \($0.sizes.joined(separator: ", "))" }
    }
}
