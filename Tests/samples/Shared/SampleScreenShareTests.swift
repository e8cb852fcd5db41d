import ConnectLiveSDK
import Foundation
import TestFixtures
import TestSupport
import Testing

#if canImport(Combine)
    import Combine
#else
    import OpenCombine
#endif

/// The extension of the samples in the test's process, which notes its end and shows it instead of ending the process.
final class TestedExtension: ConnectLiveSampleHandler {
    let errors = Collected<String>()

    override func finishBroadcastWithError(_ error: any Error) {
        let error = error as NSError
        errors.append("\(error.domain) \(error.code) \(error.localizedFailureReason ?? "")")
    }

    /// Passes a frame with a bar code on, as the system would.
    func show(_ code: UInt32) {
        guard let frame = PixelBuffer(width: 1280, height: 720) else { return }
        frame.draw { image in
            image.fill(luma: 90)
            image.draw(barCode: code)
        }
        processSampleBuffer(SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now), with: .video)
    }
}

extension SampleTests {
    /// Sharing a screen. Without a name of a program, the test is the extension.
    @MainActor @Suite(.timeLimit(.minutes(2))) struct ScreenSharing {
        /// A call whose first participant has requested the screen of this group.
        private func share(
            _ group: String, _ body: @MainActor (Guide, Guide, ScreenShareSamples) async throws -> Void
        ) async throws {
            let folder = TemporaryFolder()
            let environment = EnvironmentOverride(["XDG_RUNTIME_DIR": folder.path])
            defer { withExtendedLifetime(environment) {} }
            try await withServer { _ in
                let (ann, ben, _) = try await call()
                let samples = ScreenShareSamples()
                samples.room = ann.room
                samples.s10StartScreenSharing(appGroup: group, extensionBundleId: "")
                let socket = folder.file("connectlive/groups/\(group)/frames.sock")
                try await wait(for: "the socket") { FileManager.default.fileExists(atPath: socket) }
                try await body(ann, ben, samples)
                ann.s31Disconnect()
            }
        }

        /// The shared screen, as another participant has it.
        private func screen(_ ben: Guide) -> RemoteVideo? {
            ben.room?.remoteParticipants[ben.participantId]?.videos.values.first { $0.extraValue == "screen" }
        }

        @Test
        func `controls 10 to 12, README 28, 41 to 43: the status of a shared screen is published, and others see it`()
            async throws
        {
            var statuses: [ScreenShareData.ExtensionStatus] = []
            try await share("group.samples") { _, ben, samples in
                let subscription = samples.$screenShareStatus.sink { statuses.append($0) }
                let share = try ConnectLive.createScreenShare(appGroup: "group.samples")
                share.start { code, message in Issue.record("\(code): \(message)") }
                let frame = try #require(PixelBuffer(width: 1280, height: 720))
                try await wait(for: "the screen") {
                    share.sendVideoFrame(sampleBuffer: SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now))
                    return screen(ben) != nil
                }
                try await wait(for: "the statuses") { samples.screenShareStatus == .broadcastStarted }
                share.stop {}
                try await wait(for: "the last status") { samples.screenShareStatus == .broadcastClosed }
                samples.s11StopScreenSharing()
                #expect(samples.s12Statuses() == [0, 1, 2, 3])
                subscription.cancel()
            }
            #expect(statuses == [.notAvailable, .broadcastReady, .broadcastStarted, .broadcastClosed, .notAvailable])
        }

        @Test func `controls 13, README 44: the extension passes the screen on, except while it is paused`()
            async throws
        {
            try await share("group.xxxx") { _, ben, samples in
                let handler = TestedExtension()
                handler.broadcastStarted(withSetupInfo: nil)
                try await wait(for: "the screen") {
                    handler.show(1)
                    return screen(ben) != nil
                }
                let video = try #require(screen(ben))
                let (view, codes) = (UIRenderView(), Collected<UInt32?>())
                view.onFrame = { codes.append($0.barCode) }
                video.attach(view)
                _ = await ben.room?.subscribe(videoId: video.id)
                try await wait(for: "the first frame") {
                    handler.show(1)
                    return codes.all.contains(1)
                }
                handler.broadcastPaused()
                for _ in 0..<10 { handler.show(2) }
                handler.broadcastResumed()
                try await wait(for: "the last frame") {
                    handler.show(3)
                    return codes.all.contains(3)
                }
                #expect(!codes.all.contains(2))
                handler.broadcastFinished()
                #expect(handler.screenShare == nil && handler.errors.count == 0)
                try await wait(for: "the end") { samples.screenShareStatus == .broadcastClosed && screen(ben) == nil }
            }
        }

        @Test
        func `controls 11, 13, README 42, 44: a share that the application stops ends its extension with the reason`()
            async throws
        {
            try await share("group.xxxx") { _, ben, samples in
                let handler = TestedExtension()
                handler.broadcastStarted(withSetupInfo: nil)
                try await wait(for: "the screen") {
                    handler.show(1)
                    return screen(ben) != nil
                }
                samples.s11StopScreenSharing(isLeftRoom: true)
                #expect(samples.screenShareStatus == .notAvailable)
                try await wait(for: "the reason") { handler.errors.count == 1 }
                #expect(handler.errors.all[0].hasPrefix("app.domain.*** -1 meetingFinished"), "\(handler.errors.all)")
                try await wait(for: "the end") { screen(ben) == nil }
                // No further status comes.
                #expect(samples.screenShareStatus == .notAvailable)
            }
        }
    }
}
