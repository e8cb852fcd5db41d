import ConnectLiveSDK
import Dispatch
import Foundation
import Testing

#if canImport(Combine)
    import Combine
#else
    import OpenCombine
#endif

/// The samples about screen sharing, by their numbers in docs/samples.md: 10 to 13 of the page about media controls, 28 and 41 to
/// 44 of the README, which print the same. OpenCombine stands in for Combine.
@MainActor
final class ScreenShareSamples: SampleApp, ObservableObject {
    @Published var screenShareStatus: ScreenShareData.ExtensionStatus = .notAvailable

    /// README 28 declares both calls.
    func s10StartScreenSharing(appGroup: String, extensionBundleId: String) {
        guard let room = self.room else { return }
        #if !targetEnvironment(simulator)
            try? room.requestScreenShare(appGroup: appGroup, extensionName: extensionBundleId) { [weak self] status in
                print("[startScreenSharing] \(status)")
                self?.screenShareStatus = status
            }
        #endif
    }

    func s11StopScreenSharing(isLeftRoom: Bool = false) {
        guard let room = self.room else { return }
        room.stopScreenShare(isLeftRoom: isLeftRoom)
        self.screenShareStatus = .notAvailable
    }

    func s12Statuses() -> [Int] {
        [
            ScreenShareData.ExtensionStatus.notAvailable, .broadcastReady, .broadcastStarted, .broadcastClosed,
        ].map(\.rawValue)
    }
}

// Of docs/screen-sharing.md.

func shareScreen(in room: Room) throws {
    try room.requestScreenShare(appGroup: "group.org.example.app", extensionName: "screen-extension") { status in
        print("the extension:", status)
    }
}

func stopSharing(in room: Room) {
    room.stopScreenShare(isLeftRoom: false)
}

/// Controls 13 and README 44.
class ConnectLiveSampleHandler: RPBroadcastSampleHandler {
    let appGroupName = "group.xxxx"
    var screenShare: ScreenShare?
    var disconnectSemaphore: DispatchSemaphore?

    override func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {
        do {
            screenShare = try ConnectLive.createScreenShare(appGroup: appGroupName)
        } catch {
            finishBroadcastWithError(error)
        }

        disconnectSemaphore = DispatchSemaphore(value: 0)
        screenShare?.start { [weak self] error, msg in
            guard let self = self else { return }

            var key = "default"
            switch error {
            case .invalidData: key = "invalidData"
            case .stopBroadcast: key = "stopBroadcast"
            case .meetingFinished: key = "meetingFinished"
            case .broadcastFailed: key = "broadcastFailed"
            case .broadcastClosed: key = "broadcastClosed"
            @unknown default: break
            }

            let message = NSLocalizedString(
                key, tableName: "Localizable", bundle: Bundle.main, value: "", comment: ""
            ).appending(msg)
            let userInfo = [NSLocalizedFailureReasonErrorKey: message]
            let error = NSError(domain: "app.domain.***", code: -1, userInfo: userInfo)
            self.finishBroadcastWithError(error)
        }
    }

    override func broadcastPaused() {
        screenShare?.pause()
    }

    override func broadcastResumed() {
        screenShare?.resume()
    }

    override func broadcastFinished() {
        screenShare?.stop { [weak self] in
            self?.disconnectSemaphore?.signal()
        }

        disconnectSemaphore?.wait()
        screenShare = nil
    }

    override func processSampleBuffer(_ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType) {
        switch sampleBufferType {
        case RPSampleBufferType.video:
            screenShare?.sendVideoFrame(sampleBuffer: sampleBuffer)
        case RPSampleBufferType.audioApp:
            break
        case RPSampleBufferType.audioMic:
            break
        @unknown default:
            fatalError("Unknown type of sample buffer")
        }
    }
}

@MainActor @Suite struct ScreenShareSampleTests {
    @Test func `a published status reaches its observers, as with Combine`() {
        let samples = ScreenShareSamples()
        var (changes, statuses): (Int, [ScreenShareData.ExtensionStatus]) = (0, [])
        let observers = [
            samples.objectWillChange.sink { changes += 1 }, samples.$screenShareStatus.sink { statuses.append($0) },
        ]
        samples.screenShareStatus = .broadcastStarted
        #expect(changes == 1 && statuses == [.notAvailable, .broadcastStarted])
        for observer in observers { observer.cancel() }
    }
}
