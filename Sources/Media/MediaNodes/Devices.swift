internal import GStreamerKit
public import MediaGraph

/// The devices that are plugged in. All calls block for milliseconds, or longer if a camera responds slowly.
public enum Devices {
    public static func list() -> DeviceList {
        let sound = sound()
        return DeviceList(cameras: cameras(), microphones: sound.microphones, speakers: sound.speakers)
    }

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

    /// The names of libcamera's cameras for the `device` of a camera node. Empty without its GStreamer plugin.
    public static func libraryCameras() -> [String] {
        DeviceProbe.libraryCameras().map { "\(LibCamera.prefix):\($0)" }
    }

    public static func firstMicrophone() -> AudioDevice? {
        let microphones = sound().microphones
        return microphones.first { $0.isDefault } ?? microphones.first
    }
}
