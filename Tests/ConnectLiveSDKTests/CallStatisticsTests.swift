import ConnectLiveSDK
import MediaGraph
import RoomClient
import RoomProtocol
import Testing
import TestSupport

// As in docs/statistics.md.
func losses(in room: any Room) async -> [Int: Int] {
    let report = await room.getRemoteStats()
    var losses: [Int: Int] = [:]
    for object in report.statistics.values where object.type == "inbound-rtp" {
        guard let stream = object.values["streamId"] as? Int else { continue }
        losses[stream] = object.values["packetsLost"] as? Int
    }
    return losses
}

/// The statistics of a real call, all in this process.
extension SDKTests {
    @Suite(.timeLimit(.minutes(2)))
    struct CallStatistics {
        private func object(
            _ report: StatisticsReport, _ type: String, _ kind: String, stream: Int? = nil
        ) -> [String: Any]? {
            report.statistics.values.first {
                $0.type == type && $0.values["kind"] as? String == kind
                    && (stream == nil || $0.values["streamId"] as? Int == stream)
            }?.values
        }

        private func counter(_ object: [String: Any]?, _ name: String) throws -> Int {
            try #require(object?[name] as? Int, "\(name) of \(object ?? [:])")
        }

        @available(*, deprecated)
        @Test func `both ends of a call count the same media, and onStat comes at its interval`() async throws {
            try await onStage { _ in
                var config = silent()
                config.qualityStatInterval = 1
                let (publisher, viewer) = (Client(config: config), Client(config: config))
                _ = try await viewer.join("statistics")
                _ = try await publisher.join("statistics")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                try await viewer.room.subscribe(videoId: video.id).get()
                try await requireEventually(within: 30, "three intervals of decoded video and audio") {
                    viewer.listener.stats.count { stat in
                        stat.remoteStat?.videoMetrics.first.map { $0.framesDecoded > 0 } == true
                            && stat.remoteStat?.audioMetrics.first.map { $0.totalSamplesReceived ?? 0 > 0 } == true
                    } >= 3
                }
                // The one that sends later, so that it has counted all that the other has received.
                let (got, sent) = (await viewer.room.getRemoteStats(), await publisher.room.getLocalStats())
                try checkVideo(video.id, sent, got)
                #expect(await losses(in: viewer.room)[video.id] == 0)
                try checkAudio(sent, got)
                for report in [sent, got] {
                    for (name, value) in report.statistics.values.flatMap(\.values) where name.hasSuffix("Id") {
                        guard name != "participantId", name != "streamId", let id = value as? String else { continue }
                        #expect(report.statistics[id] != nil, "\(name) \(id)")
                    }
                }
                let metrics = try #require(await publisher.room.getLocalQualityStatsReport()).metrics
                #expect(metrics.contains { $0.type == .video && $0.framesEncoded ?? 0 > 0 && $0.srcFrames ?? 0 > 0 })
                try await publisher.leave()
                // The last ones are kept.
                let last = await publisher.room.getLocalStats()
                #expect(
                    try counter(object(last, "outbound-rtp", "video"), "framesSent")
                        >= counter(object(sent, "outbound-rtp", "video"), "framesSent"))
                try await viewer.leave()
            }
        }

        private func checkVideo(_ stream: Int, _ sent: StatisticsReport, _ got: StatisticsReport) throws {
            let outbound = object(sent, "outbound-rtp", "video", stream: stream)
            let inbound = object(got, "inbound-rtp", "video", stream: stream)
            let source = object(sent, "media-source", "video", stream: stream)
            #expect(outbound?["frameWidth"] as? Int == inbound?["frameWidth"] as? Int)
            let (encoded, frames) = (try counter(outbound, "framesEncoded"), try counter(source, "frames"))
            #expect(encoded <= frames && encoded > 0)
            #expect(try counter(inbound, "framesDecoded") <= encoded)
            // Nothing is lost on loopback.
            #expect(try counter(inbound, "packetsLost") == 0)
            let remote = object(got, "remote-outbound-rtp", "video", stream: stream)
            #expect(try counter(remote, "packetsSent") <= counter(inbound, "packetsReceived") + 100)
            #expect(object(sent, "remote-inbound-rtp", "video", stream: stream)?["roundTripTime"] is Double)
        }

        private func checkAudio(_ sent: StatisticsReport, _ got: StatisticsReport) throws {
            let source = object(sent, "media-source", "audio")
            let inbound = object(got, "inbound-rtp", "audio")
            func loudness(_ object: [String: Any]?) throws -> Double {
                let energy = try #require(object?["totalAudioEnergy"] as? Double)
                return energy / (try #require(object?["totalSamplesDuration"] as? Double))
            }
            #expect(try loudness(source) > 0)
            let ratio = try loudness(inbound) / loudness(source)
            #expect((0.5...1.5).contains(ratio), "\(ratio)")
            #expect(try counter(inbound, "totalSamplesReceived") > 48_000)
        }
    }
}
