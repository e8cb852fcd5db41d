// Captures the X display of its environment for an application that shares a screen: docs/screen-sharing.md
import ConnectLiveSDK
import Dispatch
import Foundation

@main final class ScreenExtension: RPBroadcastSampleHandler {
    private var share: (any ScreenShare)?

    override func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {
        do {
            let group = ProcessInfo.processInfo.environment["CONNECTLIVE_APP_GROUP"] ?? "group.screen"
            share = try ConnectLive.createScreenShare(appGroup: group)
        } catch {
            return finishBroadcastWithError(error)
        }
        share?.start { [weak self] _, message in
            // The application prints it among its own lines.
            let reason = "screen-extension: \(message)"
            self?.finishBroadcastWithError(
                NSError(domain: "screen-extension", code: 1, userInfo: [NSLocalizedDescriptionKey: reason]))
        }
    }

    override func processSampleBuffer(_ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType) {
        if sampleBufferType == .video { share?.sendVideoFrame(sampleBuffer: sampleBuffer) }
    }

    override func broadcastPaused() { share?.pause() }

    override func broadcastResumed() { share?.resume() }

    override func broadcastFinished() {
        let done = DispatchSemaphore(value: 0)
        share?.stop { done.signal() }
        if share != nil { done.wait() }
    }
}
