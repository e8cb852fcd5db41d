import ConnectLiveSDK
import MediaGraph
import TestSupport
import Testing

@testable import ConnectLiveSDK
@testable import RoomClient

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

        /// A machine with a tone instead of a microphone.
        private var machineWithTone: CaptureMachine {
            var machine = CaptureMachine.this
            machine.inspect = { _ throws(MediaError) in .init(hasVideo: true, hasAudio: true) }
            machine.processesVoice = { nil }
            let makePipeline = machine.makePipeline
            machine.makePipeline = { graph, bindings, registry throws(MediaError) in
                var graph = graph
                graph.nodes = graph.nodes.map { node in
                    guard node.name == MediaRequest.microphoneNode else { return node }
                    return Node("element:audiotestsrc", name: node.name, settings: ["is-live": true])
                }
                return try await makePipeline(graph, bindings, registry)
            }
            return machine
        }

        @Test(arguments: [false, true])
        func `a camera that is not there beside audio is one error at publishing, unless the application waits for it`(
            isAwaited: Bool
        ) async throws {
            let folder = TemporaryFolder()
            var options = silent().mediaOptions
            // Another reason later adds no error.
            options.cameraDevice = try CameraFile.write(
                [.init("unplugged", at: 0, until: 3), .init("busy", at: 3)], to: folder)
            (options.videoWidth, options.videoHeight, options.waitsForDevices) = (64, 48, isAwaited)
            let media = LocalMediaSession(
                options, capture: LocalCapture(options.request, on: machineWithTone))
            try await media.start()
            let scripted = ScriptedRoom()
            scripted.join()
            try scripted.room.publish(media)
            try await scripted.listener.wait(for: "the other reason", within: 20) { event -> Bool? in
                guard case .camera(.waiting(let error)) = event else { return nil }
                return error.errorDescription?.contains("in use") == true ? true : nil
            }
            #expect(scripted.errors == (isAwaited ? [] : [1201]))
            #expect(scripted.heard.prefix(2) == ["connected", "localPublished"])
            #expect(media.audio.state == .live && media.audioLevel > 0)
            await media.stop()
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
