import Cameras
import MediaNodes
import RoomClient
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

extension SDKTests {
    /// Local media that changes while it runs.
    @Suite(.timeLimit(.minutes(1)))
    struct RequestedMedia {
        private let folder = TemporaryFolder()

        /// A camera that encodes, in media without audio.
        private func media(_ change: (inout LocalMediaOptions) -> Void = { _ in }) throws -> any LocalMedia {
            CameraNames.isolate()
            var config = silent()
            let film = try EncodedFilm.h264(30, keyframeEvery: 10)
            config.mediaOptions.cameraDevice = try CameraFile.write(h264: film, to: folder)
            (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (64, 48)
            config.mediaOptions.isMirror = false
            config.mediaOptions.microphone = .none
            change(&config.mediaOptions)
            return try #require(ConnectLive.createLocalMedia(config: config))
        }

        private func codecs(_ media: any LocalMedia) -> [String] { media.localCapture?.plan?.videoCodecs ?? [] }

        private func watch(_ video: any RemoteVideo, _ viewer: Client) async throws -> Watcher {
            let watcher = try await viewer.watch(video)
            try await requireEventually("frames") { watcher.sights.count >= 5 }
            return watcher
        }

        @Test func `H.264 of the camera passes through, also beside a view, and a switched camera continues it`()
            async throws
        {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("switch")
                _ = try await publisher.join("switch")
                let media = try media()
                try publisher.room.publish(media)
                let watcher = try await watch(try await viewer.listener.waitForVideo(), viewer)
                #expect(codecs(media).isEmpty)
                let (view, mine) = (FrameView(), Watcher())
                mine.watch(in: view) { media.video.attach($0) }
                try await requireEventually("the view") { mine.sights.count >= 5 }
                #expect(codecs(media) == ["video-decoder"])
                media.video.detach()
                try await requireEventually("no decoder") { codecs(media).isEmpty }
                let raw = try CameraFile.write([], to: folder)
                try await media.update { options in
                    options.cameraDevice = raw
                    options.isMirror = true
                }
                #expect(media.isMirror && codecs(media) == ["h264-encoder"])
                let count = watcher.sights.count
                try await requireEventually("frames of the other camera") { watcher.sights.count >= count + 10 }
                #expect(viewer.listener.names.count { $0 == "video" } == 1)
                #expect(!viewer.listener.names.contains("videoGone"))
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }

        @Test func `controls of the camera change while it is shown, and a refused value throws`() async throws {
            let camera = try CameraFile.writeAdjustable(to: folder)
            func brightness() throws -> Int {
                let opened = try CameraSystem.machine.open(camera, mayReserve: false)
                defer { opened.device.close() }
                let control = try opened.device.controls().first { $0.name == "brightness" }
                return try opened.device.value(of: try #require(control))
            }
            let media = try media { options in
                options.cameraDevice = camera
                options.cameraControls = "brightness=10"
            }
            try await media.start()
            #expect(try brightness() == 10)
            try await media.update { $0.cameraControls = "brightness=90,contrast=1" }
            #expect(try brightness() == 90)
            let error = await #expect(throws: ConnectLiveError.self) {
                try await media.update { $0.cameraControls = "brightness=256" }
            }
            #expect(error?.errorDescription?.contains("must be from 0 to 255, not 256") == true)
            #expect(try brightness() == 90)
            #expect(media.localCapture?.statistics.sources["source"]?.losses == 0)
            try await media.update { $0.cameraControls = nil }
            #expect(try brightness() == 128)
            await media.stop()
        }

        @Test func `switching to a camera that is missing throws, and the former one continues`() async throws {
            let media = try media()
            defer { CameraNames.unbind() }
            try CameraNames.bind("back", to: "\(folder.path)/unplugged")
            try await media.start()
            let error = await #expect(throws: ConnectLiveError.self) {
                try await media.switchCamera(position: .back, isMirror: true)
            }
            #expect(error?.code == 1201)
            #expect(error?.errorDescription?.contains("unplugged") == true)
            #expect(media.position == .unspecified && !media.isMirror)
            try CameraNames.bind("front", to: "\(folder.path)/unplugged")
            let told = await withCheckedContinuation { continuation in
                media.switchCamera(position: .front, isMirror: false) {
                    continuation.resume(returning: ($0 as? ConnectLiveError)?.code)
                }
            }
            #expect(told == 1201)
            let (view, mine) = (FrameView(), Watcher())
            mine.watch(in: view) { media.video.attach($0) }
            try await requireEventually("the view") { mine.sights.count >= 5 }
            await media.stop()
        }

        @Test func `video whose machine has no microphone is published alone, with an error that says so`() async throws
        {
            let media = try media { $0.microphone = .automatic }
            try await media.start()
            let scripted = ScriptedRoom()
            scripted.join()
            try scripted.room.publish(media)
            try await requireEventually("published") { scripted.isPublished(media) }
            // On a machine with a microphone, there is nothing to say.
            let isMissing = Devices.firstMicrophone() == nil
            try await requireEventually("the error") { scripted.errors == (isMissing ? [1201] : []) }
            if isMissing, case .error(_, let message, _) = scripted.listener.events.last {
                #expect(message.contains("There is no microphone"))
            }
            await media.stop()
        }

        @Test func `setting the position switches the camera, and a failure is an error of the rooms`() async throws {
            let media = try media()
            try await media.start()
            let scripted = ScriptedRoom()
            scripted.join()
            try scripted.room.publish(media)
            try await requireEventually("published") { scripted.isPublished(media) }
            defer { CameraNames.unbind() }
            try CameraNames.bind("back", to: "\(folder.path)/unplugged")
            media.position = .back
            try await requireEventually("the error") { scripted.errors == [1201] }
            #expect(media.position == .unspecified)
            try CameraNames.bind("back", to: try CameraFile.write([], to: folder))
            media.position = .back
            #expect(media.position == .back && !media.isMirror)
            try await requireEventually("the other camera") { codecs(media) == ["vp8-encoder"] }
            #expect(media.position == .back && scripted.errors == [1201])
            await media.stop()
        }

        @Test func `a position and a switch choose a place instead of a camera by its name`() async throws {
            let camera = try media()
            camera.position = .back
            let requested = try #require(camera.localCapture?.requested)
            #expect(requested.camera == nil && requested.position == "back" && camera.position == .back)
            camera.position = .unspecified
            #expect(camera.localCapture?.requested.position == nil && camera.position == .unspecified)
            try await camera.switchCamera(position: .back, isMirror: true)
            let switched = try #require(camera.localCapture?.requested)
            #expect(
                switched.camera == nil && switched.position == "back" && camera.position == .back && camera.isMirror)
        }

        @Test(arguments: [CapturerType.bypass, .file])
        func `media of another source than a camera has none to switch, and goes on`(
            source: CapturerType
        ) async throws {
            for usesTestPattern in [false, source == .file] {
                let media = try media { options in
                    options.source = source
                    if usesTestPattern { options.usesTestPattern = true }
                }
                // The processing of voice is not requested by the application: it is found out with the first change.
                func requested() -> MediaRequest? {
                    var request = media.localCapture?.requested
                    request?.voice = nil
                    return request
                }
                let before = requested()
                let error = await #expect(throws: ConnectLiveError.self) {
                    try await media.switchCamera(position: .back, isMirror: true)
                }
                #expect(error?.code == 1201 && error?.errorDescription?.contains("no camera") == true)
                media.position = .back
                #expect(requested() == before && (media.videoSource != nil) == (source == .bypass))
            }
        }

        @Test func `an error of the rooms says that media without a camera has no position`() async throws {
            let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
            let scripted = ScriptedRoom()
            scripted.join()
            try scripted.room.publish(media)
            try await requireEventually("published") { scripted.isPublished(media) }
            media.position = .back
            try await requireEventually("the error") { scripted.errors == [1201] }
            await media.stop()
        }

        @Test func `another definition counts from the next publication while a room has the video`() async throws {
            try await onStage { _ in
                let client = Client()
                _ = try await client.join("definition")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                #expect(!media.video.hd)
                media.video.hd = true
                #expect(media.video.hd && media.localCapture?.requested.isHighDefinition == true)
                media.video.hd = false
                try client.room.publish(media)
                try await client.listener.waitForLocalMedia()
                media.video.hd = true
                #expect(media.video.hd && media.localCapture?.requested.isHighDefinition == false)
                // In a second room, it would change the video of the first.
                let second = ScriptedRoom()
                second.join()
                try second.room.publish(media)
                try await requireEventually("published in the second room") { second.isPublished(media) }
                #expect(media.video.hd && media.localCapture?.requested.isHighDefinition == false)
                second.room.unpublish(media)
                client.room.unpublish(media)
                try await client.listener.wait(for: "the end") { if case .localUnpublished = $0 { true } else { nil } }
                try client.room.publish(media)
                try await requireEventually("published again") {
                    client.listener.names.count { $0 == "localPublished" } == 2
                }
                #expect(media.video.hd && media.localCapture?.requested.isHighDefinition == true)
                #expect(!client.listener.names.contains("error"))
                try await client.leave()
                await media.stop()
            }
        }

        @Test func `front and back are the cameras that the user has bound to these names`() async throws {
            let media = try media()
            try await media.start()
            try CameraNames.bind("back", to: try CameraFile.write([], to: folder))
            defer { CameraNames.unbind() }
            try await media.switchCamera(position: .back, isMirror: true)
            #expect(media.position == .back && media.isMirror)
            // No room has the video, so its codec is chosen again.
            #expect(codecs(media) == ["vp8-encoder"])
            await media.stop()
        }

        @Test func `before the start, a switch chooses the camera to start with`() async throws {
            let media = try media()
            try await media.switchCamera(position: .front, isMirror: true)
            #expect(media.position == .front && media.isMirror)
            let error = await #expect(throws: ConnectLiveError.self) { try await media.start() }
            #expect(error?.code == 1201)
        }

        @Test func `media that was stopped starts again`() async throws {
            let media = try media()
            try await media.start()
            await media.stop()
            try await media.start()
            let (view, mine) = (FrameView(), Watcher())
            mine.watch(in: view) { media.video.attach($0) }
            try await requireEventually("the view") { mine.sights.count >= 5 }
            await media.stop()
        }

        @Test func `a room cannot publish media twice, and two rooms can publish it at a time`() async throws {
            try await onStage { _ in
                let clients = [Client(), Client(), Client(), Client()]
                for (client, room) in zip(clients, ["one", "one", "two", "two"]) { _ = try await client.join(room) }
                let media = try media()
                try clients[0].room.publish(media)
                let twice = #expect(throws: ConnectLiveError.self) { try clients[0].room.publish(media) }
                #expect(twice?.code == 1441)
                try clients[2].room.publish(media)
                for place in [1, 3] {
                    _ = try await watch(try await clients[place].listener.waitForVideo(), clients[place])
                }
                clients[0].room.unpublish(media)
                try await clients[0].listener.wait(for: "unpublished") {
                    if case .localUnpublished = $0 { true } else { nil }
                }
                #expect(media.video.owner == clients[2].room.localParticipant.id)
                #expect(clients[2].room.localParticipant.videos.keys.sorted() == [media.video.id])
                for client in clients { try await client.leave() }
                #expect(media.video.id == 0)
                await media.stop()
            }
        }

        @Test func `video that is not active waits for the others`() async throws {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("active")
                _ = try await publisher.join("active")
                let media = try media()
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                let watcher = try await watch(video, viewer)
                media.video.active = false
                #expect(!media.video.active)
                try await requireEventually("the state") { video.state == .waiting(reason: "video off") }
                media.video.setEnabled(true)
                try await requireEventually("the state") { video.state == .live }
                let count = watcher.sights.count
                try await requireEventually("frames") { watcher.sights.count >= count + 5 }
                #expect(media.video.getEnabled())
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }
    }
}
