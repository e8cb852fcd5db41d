internal import MediaNodes

// Apple's names of this SDK's types, for code that was written for iOS. (Linux)

/// The kind of media that an application wants to capture.
public struct AVMediaType: RawRepresentable, Sendable, Hashable {
    /// Video of cameras.
    public static let video = AVMediaType(rawValue: "vide")
    /// Audio of microphones.
    public static let audio = AVMediaType(rawValue: "soun")

    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
}

/// Whether this user may capture. The raw values are Apple's.
public enum AVAuthorizationStatus: Int, Sendable, Hashable {
    /// Never on Linux: nobody is asked.
    case notDetermined = 0
    /// The machine has no sound system, so that no microphone can be opened.
    case restricted = 1
    /// This user may open none of the cameras. Add the user to the group `video`.
    case denied = 2
    /// This user may capture.
    case authorized = 3
}

/// The calls of `AVCaptureDevice` with which applications for iOS ask for access before they capture.
public enum AVCaptureDevice {
    /// The place of a camera.
    public typealias Position = CameraPosition

    /// Whether this user may open a camera or reach a sound system. A machine without a camera is `.authorized`: one may be
    /// plugged in. Blocks for milliseconds, or up to 3 s if a sound server does not respond.
    public static func authorizationStatus(for mediaType: AVMediaType) -> AVAuthorizationStatus {
        switch mediaType {
        case .video: Devices.mayOpenCameras ? .authorized : .denied
        default: Devices.hasSoundSystem ? .authorized : .restricted
        }
    }

    /// Asks nobody: Linux decides by the groups of the user.
    ///
    /// - Parameter handler: receives whether the status is `.authorized`, on the callback queue
    public static func requestAccess(for mediaType: AVMediaType, completionHandler handler: @escaping (Bool) -> Void) {
        let callback = Callback(handler)
        Task.detached { callback(await requestAccess(for: mediaType)) }
    }

    /// Returns whether the status is `.authorized`.
    public static func requestAccess(for mediaType: AVMediaType) async -> Bool {
        let status = try? await offPool { () throws(MediaError) in authorizationStatus(for: mediaType) }
        return status == .authorized
    }
}
