internal import GStreamerKit
public import MediaGraph

/// The devices that are plugged in. All calls block for milliseconds, or longer if a camera responds slowly.
public enum Devices {
    public static func list() -> DeviceList {
        let sound = sound()
        return DeviceList(cameras: cameras(), microphones: sound.microphones, speakers: sound.speakers)
    }

    /// Microphones and loudspeakers of the first sound system that has any.
    public static func sound() -> (microphones: [AudioDevice], speakers: [AudioDevice]) {
        let found = SoundSearch.devices(of: nil)
        return (found?.microphones ?? [], found?.speakers ?? [])
    }

    /// The names of libcamera's cameras for the `device` of a camera node. Empty without its GStreamer plugin.
    public static func libraryCameras() -> [String] {
        DeviceProbe.libraryCameras().map { "\(LibCamera.prefix):\($0)" }
    }

    public static func firstMicrophone() -> AudioDevice? {
        let microphones = sound().microphones
        return microphones.first { $0.isDefault } ?? microphones.first
    }
}
