import ConnectLiveSDK
import Foundation
import MediaGraph
import RoomProtocol
import RoomServer
import Testing
import TestSupport

@testable import RoomClient

/// Calls between SDK clients and a server, all in this process. Serialized, because a process has one sign-in, and
/// measurements of one call should not suffer from the next.
extension SDKTests {
    @Suite(.timeLimit(.minutes(3)))
    struct Calls {
        private func pattern(frames: Int = 0, codec: VideoCodec = .vp8, rate: Double = 30) -> MediaRequest {
            var options = MediaRequest.testPattern(frames: frames)
            options.framesPerSecond = rate
            options.codec = codec
            return options
        }

        private func publish(_ options: MediaRequest, by client: Client) async throws -> any LocalMedia {
            let media = ConnectLive.createLocalMedia(options)
            try client.room.publish(media)
            try await client.listener.wait(for: "published") {
                if case .localPublished = $0 { true } else { nil }
            }
            return media
        }

        /// RTP timestamps of the publisher's packets, in order.
        private func sent(_ video: any RemoteVideo, on stage: Stage) throws -> [UInt32] {
            CaptureLedger.shared.timestamps(.init(server: try ServerAddress(stage.server.url), stream: video.id))
        }

        /// Waits until the pattern has ended and the up session has all of it.
        private func end(of capture: LocalCapture, after frames: Int, publishedBy client: Client) async throws {
            let owner = Collected<Bool>()
            capture.observe(as: owner, failed: { _ in }, ended: { owner.append(true) })
            try await requireEventually(within: Double(frames) / 30 + 15, "the end of the pattern") {
                owner.count > 0
            }
            #expect(capture.encoderStatistics.captured == frames)
            // The up session gets frames in order, so it has the last one when it answers.
            _ = await client.room.statistics()
        }

        @Test func `every encoded frame is rendered once and in order`() async throws {
            try await onStage { stage in
                let viewer = Client()
                _ = try await viewer.join("order")
                let publisher = Client()
                _ = try await publisher.join("order")
                let media = try await publish(pattern(frames: 210), by: publisher)
                let video = try await viewer.listener.waitForVideo()
                let watcher = try await viewer.watch(video)
                let capture = try #require(media.localCapture)
                try await end(of: capture, after: 210, publishedBy: publisher)
                try await requireEventually("the last frame") {
                    watcher.sights.last?.rtpTimestamp == (try sent(video, on: stage)).last
                }
                let sights = watcher.sights
                let all = try sent(video, on: stage)
                try #require(!all.isEmpty, "the up session did not connect before the pattern ended")
                let first = try #require(all.firstIndex { $0 == sights.first?.rtpTimestamp })
                let isComplete = sights.map(\.rtpTimestamp) == Array(all[first...])
                let missing = all[first...].indices.filter { index in !sights.contains { $0.rtpTimestamp == all[index] }
                }
                #expect(
                    isComplete,
                    "rendered \(sights.count) of \(all.count - first) frames from \(first) on, without \(missing)")
                // A busy machine drops frames before the encoder, which are counted, and tested below.
                #expect(sights.count > 50)
                let codes = sights.compactMap(\.barCode)
                #expect(codes.count == sights.count, "every frame shows its number")
                #expect(zip(codes, codes.dropFirst()).allSatisfy { $0 < $1 })
                let encoder = capture.encoderStatistics
                #expect(encoder.captured == encoder.encoded + encoder.droppedBeforeEncoder + encoder.droppedForRate)
                let numbers = try #require(await publisher.room.statistics().published.first { $0.isVideo })
                // The frames before the publication have no room.
                #expect(numbers.framesSent >= sights.count)
                #expect(numbers.framesSent + numbers.framesNotSent <= encoder.encoded)
                #expect(numbers.framesEncoded == encoder.encoded)
                let received = try #require(await viewer.room.statistics().received.first { $0.isVideo })
                #expect(received.framesRendered == sights.count)
                #expect(received.latency?.method == .rtpTimestamp)
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }

        /// Repairs on time are tested on virtual time (PeerSessionTests) and over real sockets (PeerIOTests). Here they
        /// must reach the decoder: a frame without one packet loses all frames up to the next keyframe.
        @Test func `five percent of loss on every hop is repaired without a visible effect`() async throws {
            try await onStage { stage in
                // Each client loses 5 % of its sent and received packets: one hop is between it and the server.
                let viewer = Client(impairment: LinkImpairment(seed: 1, outgoingLoss: 0.05, incomingLoss: 0.05))
                _ = try await viewer.join("loss")
                let publisher = Client(impairment: LinkImpairment(seed: 101, outgoingLoss: 0.05, incomingLoss: 0.05))
                _ = try await publisher.join("loss")
                let media = try await publish(pattern(frames: 150), by: publisher)
                let video = try await viewer.listener.waitForVideo()
                let watcher = try await viewer.watch(video)
                let capture = try #require(media.localCapture)
                try await end(of: capture, after: 150, publishedBy: publisher)
                let sent = try sent(video, on: stage)
                // No packets follow the last frames, so their loss would not show.
                try await requireEventually("nearly the last frame") {
                    sent.suffix(5).contains { $0 == watcher.sights.last?.rtpTimestamp }
                }
                let first = try #require(sent.firstIndex { $0 == watcher.sights.first?.rtpTimestamp })
                let count = sent.count - first
                #expect(watcher.sights.count * 10 >= count * 9, "\(watcher.sights.count) of \(count) frames")
                let codes = watcher.sights.compactMap(\.barCode)
                #expect(zip(codes, codes.dropFirst()).allSatisfy { $0 < $1 }, "in order")
                let received = try #require(await viewer.room.statistics().received.first { $0.isVideo })
                #expect(received.packetsLost > 0)
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }

        @Test func `a room carries a VP8 and an H264 publisher side by side`() async throws {
            try await onStage { _ in
                let viewer = Client()
                _ = try await viewer.join("mixed")
                let first = Client()
                _ = try await first.join("mixed")
                let vp8 = try await publish(pattern(codec: .vp8, rate: 15), by: first)
                let second = Client()
                _ = try await second.join("mixed")
                let h264 = try await publish(pattern(codec: .h264, rate: 15), by: second)
                let watchers = [
                    try await viewer.watch(try await viewer.listener.waitForVideo(count: 1)),
                    try await viewer.watch(try await viewer.listener.waitForVideo(count: 2)),
                ]
                for watcher in watchers {
                    try await requireEventually("20 numbered frames") {
                        watcher.sights.compactMap(\.barCode).count >= 20
                    }
                }
                let received = await viewer.room.statistics().received.filter(\.isVideo)
                #expect(received.map(\.codec).sorted() == ["H264", "VP8"])
                for client in [viewer, first, second] { try await client.leave() }
                await vp8.stop()
                await h264.stop()
            }
        }

        @Test func `a receiver that carried VP8 can carry H264 next, and decodes it`() async throws {
            try await onStage { _ in
                var config = silent()
                // The maximum applies although the default of the initial count is greater.
                config.videoReceiverMaximumCount = 1
                let viewer = Client(config: config)
                _ = try await viewer.join("switch")
                let first = Client()
                _ = try await first.join("switch")
                let vp8 = try await publish(pattern(codec: .vp8, rate: 15), by: first)
                let second = Client()
                _ = try await second.join("switch")
                let h264 = try await publish(pattern(codec: .h264, rate: 15), by: second)
                let videos = [
                    try await viewer.listener.waitForVideo(count: 1), try await viewer.listener.waitForVideo(count: 2),
                ]
                let before = try await viewer.watch(videos[0])
                try await requireEventually("VP8") { before.sights.count >= 5 }
                // The only receiver is in use.
                guard case .failure(let error as ConnectLiveError) = await viewer.room.subscribe(videoId: videos[1].id)
                else { throw NotInTime(what: "a refusal") }
                #expect(error.code == 1322)
                #expect(viewer.room.getVideoOccupants() == [first.room.localParticipant.id])
                for round in 0..<2 {
                    let (old, new) = (videos[round % 2], videos[(round + 1) % 2])
                    try await viewer.room.unsubscribe(videoId: old.id).get()
                    #expect(!old.isSubscribed)
                    let watcher = try await viewer.watch(new)
                    try await requireEventually("the other codec") { watcher.sights.compactMap(\.barCode).count >= 10 }
                    #expect(new.isSubscribed)
                }
                for client in [viewer, first, second] { try await client.leave() }
                await vp8.stop()
                await h264.stop()
            }
        }

        @Test func `the pool of receivers grows for one more video`() async throws {
            try await onStage { _ in
                var config = silent()
                config.videoReceiverInitialCount = 1
                config.videoReceiverMaximumCount = 2
                let viewer = Client(config: config)
                _ = try await viewer.join("growth")
                let publisher = Client()
                _ = try await publisher.join("growth")
                // One participant publishes twice, so that the up session is negotiated again too.
                let media = [
                    try await publish(pattern(rate: 15), by: publisher),
                    try await publish(pattern(rate: 15), by: publisher),
                ]
                var watchers: [Watcher] = []
                for count in 1...2 {
                    let video = try await viewer.listener.waitForVideo(count: count)
                    watchers.append(try await viewer.watch(video))
                }
                for watcher in watchers {
                    try await requireEventually("pictures") { watcher.sights.compactMap(\.barCode).count >= 10 }
                }
                #expect(publisher.room.localParticipant.videos.count == 2)
                for client in [viewer, publisher] { try await client.leave() }
                for item in media { await item.stop() }
            }
        }

        @Test func `audio is heard without subscribing, and its participant is an audio occupant`() async throws {
            try await onStage { _ in
                let viewer = Client()
                _ = try await viewer.join("sound")
                let publisher = Client()
                _ = try await publisher.join("sound")
                var options = pattern()
                options.hasVideo = false
                let media = try await publish(options, by: publisher)
                let audio = try await viewer.listener.wait(for: "sound") {
                    if case .heard(let audio) = $0 { audio } else { nil }
                }
                #expect(audio.owner == publisher.room.localParticipant.id)
                #expect(viewer.room.getAudioOccupants() == [audio.owner])
                try await requireEventually("half a second of sound") {
                    await viewer.room.statistics().received.contains { $0.audioSecondsAboveSilence > 0.5 }
                }
                try await publisher.leave()
                try await viewer.listener.wait(for: "silence") { if case .unheard = $0 { true } else { nil } }
                #expect(viewer.room.getAudioOccupants() == [])
                try await viewer.leave()
                await media.stop()
            }
        }
    }
}
