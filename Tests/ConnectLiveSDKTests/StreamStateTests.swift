import ConnectLiveSDK
import TestSupport
import Testing

@testable import ConnectLiveSDK

extension SDKTests {
    /// Local media whose camera goes and returns.
    @Suite(.timeLimit(.minutes(1)))
    struct StreamStates {
        @Test func `a camera that is lost and returns is reported to its application and to the others`() async throws {
            try await onStage { _ in
                let folder = TemporaryFolder()
                var config = silent()
                config.mediaOptions.cameraDevice = try CameraFile.write(CameraFile.comesAndGoes, to: folder)
                config.mediaOptions.microphone = .none
                (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (64, 48)
                let (viewer, publisher) = (Client(), Client(config: config))
                _ = try await viewer.join("states")
                _ = try await publisher.join("states")
                let media = try #require(ConnectLive.createLocalMedia(config: config))
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                try await viewer.listener.wait(for: "the loss", within: 20) { event -> Bool? in
                    guard case .videoChanged(let changed, .waiting(reason: "camera unplugged")) = event else {
                        return nil
                    }
                    return changed === video
                }
                try await viewer.listener.wait(for: "the return", within: 20) { event -> Bool? in
                    guard case .videoChanged(let changed, .live) = event else { return nil }
                    return changed === video
                }
                try await publisher.listener.wait(for: "the loss at home") { event -> Bool? in
                    guard case .camera(.lost(let error)) = event else { return nil }
                    return error.code == 1201
                }
                try await publisher.listener.wait(for: "the return at home") { event -> Bool? in
                    if case .camera(.returned) = event { true } else { nil }
                }
                #expect(!publisher.listener.names.contains("error"))
                #expect(!viewer.listener.names.contains("videoGone"))
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }

        @Test func `a camera that is not there, and another that takes over, are reported to the application`()
            async throws
        {
            try await onStage { _ in
                let folder = TemporaryFolder()
                var config = silent()
                let gone = CameraFile.Fault("unplugged", at: 0)
                let other = try CameraFile.write([.init("unplugged", at: 0, until: 3)], to: folder, "other.json")
                config.mediaOptions.cameraDevice = try CameraFile.write([gone], to: folder)
                config.mediaOptions.failoverCamera = other
                config.mediaOptions.waitsForDevices = true
                config.mediaOptions.microphone = .none
                (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (64, 48)
                let publisher = Client(config: config)
                _ = try await publisher.join("failover")
                let media = try #require(ConnectLive.createLocalMedia(config: config))
                try publisher.room.publish(media)
                try await publisher.listener.wait(for: "the wait", within: 20) { event -> Bool? in
                    guard case .camera(.waiting(let error)) = event else { return nil }
                    return error.code == 1201
                }
                #expect(media.video.state == .waiting(reason: "waiting for the camera"))
                try await publisher.listener.wait(for: "the other camera", within: 20) { event -> Bool? in
                    guard case .camera(.failedOver(let device)) = event else { return nil }
                    return device == other
                }
                #expect(media.video.state == .live)
                #expect(!publisher.listener.names.contains("error"))
                try await publisher.leave()
                await media.stop()
            }
        }
    }
}
