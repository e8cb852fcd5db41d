internal import GStreamerKit
public import MediaGraph

/// The devices that are plugged in. All calls block for milliseconds, or longer if a camera responds slowly.
public enum Devices {
    public static func list() -> DeviceList {
        let sound = DeviceProbe.soundDevices()
        return DeviceList(cameras: cameras(), microphones: sound.sources, speakers: sound.sinks)
    }

    /// Microphones and loudspeakers.
    public static func sound() -> (microphones: [AudioDevice], speakers: [AudioDevice]) {
        let found = DeviceProbe.soundDevices()
        return (found.sources, found.sinks)
    }

    /// The names of libcamera's cameras for the `device` of a camera node. Empty without its GStreamer plugin.
    public static func libraryCameras() -> [String] {
        DeviceProbe.libraryCameras().map { "\(LibCamera.prefix):\($0)" }
    }

    public static func firstMicrophone() -> AudioDevice? {
        let microphones = DeviceProbe.soundDevices().sources
        return microphones.first { $0.isDefault } ?? microphones.first
    }
}
