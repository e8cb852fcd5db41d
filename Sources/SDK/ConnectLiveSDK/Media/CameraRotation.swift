internal import RoomClient

/// The direction that decides how a camera's frames are turned upright: `LocalMediaOptions.rotationType`.
public enum CameraRotationType: Sendable, Hashable {
    /// None: frames stay as the camera gives them.
    case notAvailable
    /// That of the machine, as its sensor reports it over iio-sensor-proxy. Without a sensor, frames stay as they are.
    case deviceOrientation
    /// That of the application's interface: `LocalMedia.setOrientation`.
    case appOrientation

    init(_ type: MediaRequest.RotationType) {
        self =
            switch type {
            case .none: .notAvailable
            case .device: .deviceOrientation
            case .app: .appOrientation
            }
    }

    var requested: MediaRequest.RotationType {
        switch self {
        case .notAvailable: .none
        case .deviceOrientation: .device
        case .appOrientation: .app
        }
    }
}

/// The direction of an interface, which shows how cameras are held. The raw values are those of `UIInterfaceOrientation`.
///
/// Cameras give frames that are upright in `landscapeRight`. From there, the machine is turned clockwise by 90 degrees for
/// `portrait`, 180 for `landscapeLeft`, and 270 for `portraitUpsideDown`, and the frame is turned back by as much.
public enum InterfaceOrientation: Int, Sendable, Hashable, CaseIterable {
    /// Frames stay as they are.
    case unknown = 0
    /// The machine is turned clockwise by 90 degrees.
    case portrait = 1
    /// The machine is turned clockwise by 270 degrees.
    case portraitUpsideDown = 2
    /// The machine is not turned: cameras give upright frames.
    case landscapeRight = 3
    /// The machine is turned by 180 degrees.
    case landscapeLeft = 4

    /// Whether the interface is higher than wide.
    public var isPortrait: Bool { self == .portrait || self == .portraitUpsideDown }
    /// Whether the interface is wider than high.
    public var isLandscape: Bool { self == .landscapeLeft || self == .landscapeRight }

    /// How far the machine is turned clockwise, and therefore the frame of a camera on its back, in degrees.
    var turn: Int {
        switch self {
        case .unknown, .landscapeRight: 0
        case .portrait: 90
        case .landscapeLeft: 180
        case .portraitUpsideDown: 270
        }
    }
}

extension LocalMedia {
    /// States the direction of the application's interface, for media whose `rotationType` is `appOrientation`. The camera goes on:
    /// frames are turned from one of the next ones on, and upright video gets the width as its height. Does nothing with media
    /// of the application's own type. (Linux)
    public func setOrientation(_ orientation: InterfaceOrientation) {
        let turn = orientation.turn
        (self as? LocalMediaSession)?.capture.changeLater { $0.appTurn = turn }
    }
}
