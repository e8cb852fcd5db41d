import Cameras
internal import Foundation
import MediaGraph
import MediaNodes
internal import PeerIO
internal import RoomServer

/// The machine as the checks see it. Tests make one up. Functions may block, and some may hang.
struct Machine: Sendable {
    /// A camera that is plugged in.
    struct Camera: Sendable {
        var name: String
        var model: String
        /// Why it cannot be used now. Nil if it can.
        var error: MediaError?
    }

    var elements: any PlanEnvironment = SystemEnvironment(measuringCosts: true)
    var gstreamer: @Sendable () -> String = { GStreamerRelease.version }
    var cameras: @Sendable () -> [Camera] = Machine.presentCameras
    var libraryCameras: @Sendable () -> [String] = { Devices.libraryCameras().map(\.name) }
    /// Microphones and loudspeakers, or a sentence about a sound server that hangs.
    var sound: @Sendable () -> (devices: SoundDevices?, problem: String?) = { Devices.soundDevices() }
    /// The encoders to measure, installed or not.
    var encoders = KnownEncoder.all
    /// Frames per second at a size. Throws if the encoder refuses.
    var encode: @Sendable (KnownEncoder, FrameSize) throws -> Double? = { encoder, size in
        try encoder.framesPerSecond(width: size.width, height: size.height, seconds: 1)
    }
    /// The value of an environment variable.
    var variable: @Sendable (String) -> String? = { ProcessInfo.processInfo.environment[$0] }
    /// The text of a file; nil if it cannot be read.
    var file: @Sendable (String) -> String? = { try? String(contentsOfFile: $0, encoding: .utf8) }
    /// Whether a file exists, and whether this user may read and write it.
    var access: @Sendable (String) -> (exists: Bool, isAllowed: Bool) = { path in
        (
            FileManager.default.fileExists(atPath: path),
            FileManager.default.isReadableFile(atPath: path) && FileManager.default.isWritableFile(atPath: path)
        )
    }
    var user: @Sendable () -> String = { NSUserName() }
    var ports = Ports.system
    /// The most files that a process of this user may open.
    var openFiles: @Sendable () -> Int = { RoomServer.openFileLimit }
    /// The longest buffer that a media socket asks for, in bytes.
    var wantedBuffer = RoomServer.wantedBuffer
    /// The largest error of the wall clock by the kernel's estimate. Nil if nothing synchronises it.
    var clockError: @Sendable () -> Duration? = { WallClock.error }
    /// Addresses at which other machines may reach this one.
    var addresses: @Sendable () -> [String] = { RoomServer.machineAddresses(withIPv6: true) }

    private static func presentCameras() -> [Camera] {
        CameraSystem.machine.places().map { place in
            do throws(MediaError) {
                // Keeps other programs from the camera for a moment.
                try CameraSystem.machine.open(place, mayReserve: true).close()
                return Camera(name: place.name, model: place.model)
            } catch {
                return Camera(name: place.name, model: place.model, error: error)
            }
        }
    }
}
