import ConnectLiveSDK
import Dispatch
import Foundation
import MediaGraph
import RoomClient
import Synchronization
import Testing
import TestSupport

extension SDKTests {
    /// The participants of a room, and the order and queue of their events.
    @Suite(.timeLimit(.minutes(1)))
    struct Rooms {
        @Test func `participants see each other enter and leave, and are in the list themselves`() async throws {
            try await onStage { _ in
                let first = Client()
                let alone = try await first.join("hall")
                #expect(alone == [first.room.localParticipant.id])
                let second = Client()
                let both = try await second.join("hall")
                #expect(both == [second.room.localParticipant.id, first.room.localParticipant.id])
                #expect(second.room.remoteParticipants.keys.sorted() == alone)
                let entered = try await first.listener.wait(for: "entered") {
                    if case .entered(let participant) = $0 { participant } else { nil }
                }
                #expect(entered.id == second.room.localParticipant.id)
                try await second.leave()
                try await first.listener.wait(for: "left") {
                    if case .left(let participant) = $0, participant === entered { true } else { nil }
                }
                #expect(first.room.remoteParticipants.isEmpty)
                #expect(second.listener.names == ["progress", "progress", "progress", "connected", "disconnected"])
                try await first.leave()
            }
        }

        @Test func `media published before connecting appears then, and ends with its publisher`() async throws {
            try await onStage { _ in
                let viewer = Client()
                _ = try await viewer.join("early")
                let publisher = Client()
                var config = Config()
                config.mediaOptions.usesTestPattern = true
                config.mediaOptions.videoExtraValue = "screen"
                config.mediaOptions.audioExtraValue = "song"
                let media = try #require(ConnectLive.createLocalMedia(config: config))
                try publisher.room.publish(media)
                _ = try await publisher.join("early")
                let video = try await viewer.listener.waitForVideo()
                #expect(video.extraValue == "screen")
                #expect(video.owner == publisher.room.localParticipant.id)
                let audio = try await viewer.listener.wait(for: "audio") {
                    if case .audio(let audio) = $0 { audio } else { nil }
                }
                #expect(audio.extraValue == "song")
                try await publisher.listener.wait(for: "published") {
                    if case .localPublished(let published) = $0, published === media { true } else { nil }
                }
                #expect(publisher.room.localParticipant.videos.keys.sorted() == [video.id])
                #expect(publisher.room.localParticipant.audios[audio.id] === media.audio)
                #expect(media.video.id == video.id)
                // A participant that joins later finds it without an event.
                let late = Client()
                _ = try await late.join("early")
                let found = late.room.remoteParticipants.values.flatMap { $0.videos.keys }
                #expect(found == [video.id])
                #expect(!late.listener.names.contains("video"))
                try await publisher.leave()
                try await viewer.listener.wait(for: "left") { if case .left = $0 { true } else { nil } }
                let names = viewer.listener.names
                let gone = try #require(names.firstIndex(of: "videoGone"))
                #expect(try #require(names.firstIndex(of: "left")) > gone)
                #expect(names.contains("audioGone"))
                for client in [viewer, late] { try await client.leave() }
                await media.stop()
            }
        }

        @Test func `a room that is released is left`() async throws {
            try await onStage { _ in
                let stayer = Client()
                _ = try await stayer.join("leavers")
                var leaver: Client? = Client()
                _ = try await leaver?.join("leavers")
                try await stayer.listener.wait(for: "entered") { if case .entered = $0 { true } else { nil } }
                leaver = nil
                try await stayer.listener.wait(for: "left") { if case .left = $0 { true } else { nil } }
                try await stayer.leave()
            }
        }

        @Test func `callbacks run on the main queue if Swift's async main serves it`() async throws {
            try await onStage { _ in
                let client = Client()
                _ = try await client.join("threads")
                try await client.leave()
                #expect(client.listener.mainQueue == [true, true, true, true, true])
            }
        }

        @Test func `callbacks run on the queue that the application sets`() async throws {
            let queue = DispatchQueue(label: "application")
            let key = DispatchSpecificKey<Bool>()
            queue.setSpecific(key: key, value: true)
            ConnectLive.callbackQueue = queue
            defer { ConnectLive.callbackQueue = nil }
            let onQueue: Bool = await withCheckedContinuation { continuation in
                ConnectLive.signIn(serviceId: "x", serviceSecret: "y", endpoint: "nowhere:") { _, _ in
                    continuation.resume(returning: DispatchQueue.getSpecific(key: key) == true)
                }
            }
            #expect(onQueue)
        }

        @Test func `a local view shows the captured frames`() async throws {
            var options = MediaRequest.testPattern(frames: 0)
            options.hasAudio = false
            let media = ConnectLive.createLocalMedia(options)
            let watcher = Watcher()
            let view = FrameView()
            watcher.watch(in: view) { media.video.attach($0) }
            #expect(media.video.viewId == view.uuid)
            try await media.start()
            try await requireEventually("5 frames") { watcher.sights.count >= 5 }
            #expect(watcher.sights.allSatisfy { $0.width == 640 && $0.rtpTimestamp == nil })
            #expect(view.latestFrame != nil)
            // A view shows one video at a time.
            let other = ConnectLive.createLocalMedia(options)
            other.video.attach(view)
            #expect(media.video.viewId == "")
            #expect(view.isAssignedStream)
            other.video.detach()
            #expect(!view.isAssignedStream)
            await media.stop()
        }

        @Test func `the defaults are those of the original SDK`() {
            let config = Config()
            #expect(config.videoReceiverInitialCount == 9)
            #expect(config.videoReceiverMaximumCount == 20)
            #expect(config.videoReceiverGrowthRate == 1)
            let options = config.mediaOptions
            #expect(options.source == .camera)
            #expect(options.hasAudio && options.hasVideo && options.isMirror)
            #expect(options.videoExtraValue == "" && options.audioExtraValue == "")
            #expect(options.fileName == "sample.mov")
            #expect((options.videoWidth, options.videoHeight, options.videoFPS) == (640, 480, 20))
        }
    }
}
