/// The values that an application and its extension for screen sharing exchange.
public enum ScreenShareData {
    /// The names of the values in the group that both use. Each is a small file in the folder of the group, for programs that
    /// watch a share from outside.
    public enum Keys: String, Sendable, CaseIterable {
        /// The request of the application, as JSON: the room, and the size and rate of frames.
        case requestData = "icl.requestData"
        /// The number of an `AppStatus`.
        case appStatus = "icl.appStatus"
        /// The number of an `ExtensionStatus`.
        case extensionStatus = "icl.extensionStatus"
        /// A number that grows with each change of the other values.
        case updateFlag = "icl.updateFlag"
        /// When the application wrote last, in seconds since 1970.
        case appTimestamp = "icl.appTimestamp"
    }

    /// The state of the application.
    public enum AppStatus: Int, Sendable {
        /// It has requested nothing.
        case notAvailable = 0
        /// It has requested a share.
        case startScreenShare = 1
        /// It has ended the share, and stays in the room.
        case finishedScreenShare = 2
        /// It has left the room.
        case finishedMeeting = 3
    }

    /// The state of the extension, for `Room.requestScreenShare`.
    public enum ExtensionStatus: Int, Sendable {
        /// No extension has connected.
        case notAvailable = 0
        /// An extension has connected.
        case broadcastReady = 1
        /// Frames arrive, and the room gets them.
        case broadcastStarted = 2
        /// The extension has ended, or could not be started.
        case broadcastClosed = 3
    }

    /// Why a share ends in the extension: see `ScreenShare.start`.
    public enum ExtensionErrorCode: String, Sendable {
        /// No application of this group requests a share.
        case invalidData
        /// The application has ended the share.
        case stopBroadcast
        /// The application has left the room.
        case meetingFinished
        /// The application has ended, or the connection to it.
        case broadcastClosed
        /// The connection failed, or the application refuses the frames.
        case broadcastFailed
    }
}
