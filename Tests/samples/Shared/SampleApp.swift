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

    var participantId = "someone"
    var videoId = 7
}

/// The five methods that a delegate has to have. The conformance is declared in each class with further methods, because the
/// room calls no method that a class only adds to an inherited conformance.
class FiveMethods {
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

/// Of guide 17.
class FiveMethodDelegate: FiveMethods, RoomDelegate {
}

/// Of guide 5, which leaves its methods to the application.
class CustomAudioDelegate: AudioSessionDelegate {
    var lines: [String] = []

    func didSetActive(active: Bool) { lines.append("did \(active)") }
}

/// The methods that the README declares.
class AudioDelegateOfReadme: AudioSessionDelegate {
    var lines: [String] = []

    func didBeginInterruption() { lines.append("interrupted") }

    func didEndInterruption(shouldResumeSession: Bool) { lines.append("resume \(shouldResumeSession)") }

    func didChangeRoute(reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription) {
        if reason == .oldDeviceUnavailable, previousRoute.outputs.contains(where: { $0.portType == .bluetoothA2DP }) {
            lines.append("without headset")
        }
    }

    func mediaServerTerminated() { lines.append("terminated") }

    func mediaServerReset() { lines.append("reset") }

    func didChangeCanPlayOrRecord(canPlayOrRecord: Bool) { lines.append("can \(canPlayOrRecord)") }
    func didStartPlayOrRecord() { lines.append("started") }
    func didStopPlayOrRecord() { lines.append("stopped") }

    func willSetActive(active: Bool) { lines.append("will \(active)") }
    func didSetActive(active: Bool) { lines.append("did \(active)") }
    func failedToSetActive(active: Bool, error: Error) { lines.append(error.localizedDescription) }
}

class CustomView: UIRenderView {
}

/// The part of guide 8 that guide 25 uses.
@MainActor struct RenderView {
    var uiView = UIRenderView()
}

/// A view with initializers of its own, as for a storyboard.
class LabelledView: UIRenderView {
    let label: String

    override init() {
        label = "code"
        super.init()
        videoContentMode = .scaleAspectFill
    }

    required init?(coder: NSCoder) {
        label = "storyboard"
        super.init(coder: coder)
    }
}
