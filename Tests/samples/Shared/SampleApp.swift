import ConnectLiveSDK
import Foundation

/// An application for iOS in small: the names that the samples of the original documentation assume around them.
///
/// The same file is compiled in Swift 5 and in Swift 6 mode, with the settings of a client's package. As on iOS, protocols
/// are written without `any`.
@MainActor
class SampleApp {
    var config = Config()
    var room: Room?
    var media: LocalMedia?
    var participantIds: [String] = []
    var latestErrorCode = 0
    var latestErrorMessage = ""
    var lines: [String] = []

    let participantId = "someone"
    let videoId = 7
}

/// The five methods that a delegate has to have.
class FiveMethodDelegate: RoomDelegate {
    func onConnected(participantIds: [String]) {
    }

    func onDisconnected(reason: DisconnectReason) {
    }

    func onError(code: Int, message: String, isCritical: Bool) {
    }

    func onParticipantEntered(remoteParticipant: RemoteParticipant) {
    }

    func onParticipantLeft(remoteParticipant: RemoteParticipant) {
    }
}

class CustomView: UIRenderView {
}
