import ConnectLiveSDK
import Foundation
import PeerLoop
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import PeerSession
@testable import RoomClient

/// The statistics of a room, on a scripted link.
@Suite struct StatisticsTests {
    private let scripted = ScriptedRoom()
    private var room: any Room { scripted.room }

    /// - Parameter scale: multiplies the counters.
    private func sent(stream: Int, _ codec: Codec, ssrc: UInt32, scale: Int = 1) -> SessionStatistics.Sent {
        var counters = SenderStatistics()
        (counters.packets, counters.bytes, counters.headerBytes) = (100 * scale, 12_000 * scale, 2000 * scale)
        var sent = SessionStatistics.Sent(
            stream: stream, participant: "me", mid: "0", ssrc: SSRC(ssrc), source: SSRC(ssrc),
            codec: SessionStatistics.CodecParameters(codec), counters: counters, framesSent: 50 * scale)
        if codec == .opus {
            sent.sound = SessionStatistics.Sound(seconds: 2, level: 0.5, energy: 0.5)
        } else {
            (sent.width, sent.height) = (640, 480)
            sent.encoder = SessionStatistics.Encoder(
                framesCaptured: 60 * scale, framesEncoded: 55 * scale, keyframesEncoded: 1, encodedPerSecond: 29)
            sent.counters.keyframeRequests = 2
        }
        return sent
    }

    private func received(
        stream: Int?, _ media: StreamMedia, mid: String, scale: Int = 1
    ) -> SessionStatistics.Received {
        var counters = ReceiverStatistics()
        (counters.arrivals.packets, counters.arrivals.payloadBytes) = (90 * scale, 9000 * scale)
        (counters.lost, counters.keyframeRequests) = (10 * scale, 3)
        var received = SessionStatistics.Received(
            mid: mid, media: media, ssrc: SSRC(9), stream: stream, participant: stream.map { _ in "ann" },
            codec: SessionStatistics.CodecParameters(media == .video ? .vp8 : .opus), counters: counters)
        if media == .video {
            (received.totals.framesReceived, received.totals.framesDecoded) = (30 * scale, 29 * scale)
            (received.width, received.height, received.framesPerSecond) = (320, 240, 15)
        } else {
            received.totals.audioSeconds = Double(scale)
            received.audioLevel = 0.25
        }
        return received
    }

    private func statistics(scale: Int = 1, index: Int = 0) -> RoomStatistics {
        var statistics = RoomStatistics()
        statistics.time = 1_700_000_000
        var up = SessionStatistics(direction: .up, index: index, time: 1_700_000_000, transport: .init())
        (up.transport.packetsSent, up.transport.bytesSent) = (1000 * scale, 100_000 * scale)
        up.roundTrip = 0.04
        up.sent = [sent(stream: 1, .vp8, ssrc: 100, scale: scale), sent(stream: 2, .opus, ssrc: 101, scale: scale)]
        var down = SessionStatistics(direction: .down, index: index, time: 1_700_000_000, transport: .init())
        (down.transport.packetsReceived, down.transport.bytesReceived) = (900 * scale, 90_000 * scale)
        down.received = [
            received(stream: 7, .video, mid: "4", scale: scale), received(stream: 8, .audio, mid: "0", scale: scale),
            received(stream: nil, .video, mid: "5", scale: scale),
        ]
        (statistics.up, statistics.down) = (up, down)
        return statistics
    }

    // MARK: - Reports

    @Test func `a report has the objects of its session, by their ids`() async throws {
        scripted.link.statistics = statistics()
        let local = await room.getLocalStats()
        #expect(local.timeStamp == 1_700_000_000)
        #expect(local.statistics.allSatisfy { $0.key == $0.value.id && $0.value.timeStamp == 1_700_000_000 })
        let types = Set(local.statistics.values.map(\.type))
        #expect(types == ["transport", "codec", "media-source", "outbound-rtp"])
        let video = try #require(
            local.statistics.values.first { $0.values["kind"] as? String == "video" && $0.type == "outbound-rtp" })
        #expect(video.values["bytesSent"] as? Int == 10_000 && video.values["active"] as? Bool == true)
        #expect(video.values["framesPerSecond"] as? Double == 29 && video.values["streamId"] as? Int == 1)
        let remote = await room.getRemoteStats()
        #expect(remote.statistics.values.count { $0.type == "inbound-rtp" } == 3)
        #expect(!remote.statistics.values.contains { $0.type == "outbound-rtp" })
    }

    @Test func `every value is a number, a text or a flag`() async {
        scripted.link.statistics = statistics()
        for report in [await room.getLocalStats(), await room.getRemoteStats()] {
            for value in report.statistics.values.flatMap(\.values) {
                #expect(value.value is NSNumber || value.value is String)
            }
        }
    }

    /// The casts that code for iOS makes.
    @Test func `numbers can be read as any type that has their value, and texts as both types of text`() async throws {
        scripted.link.statistics = statistics()
        let local = await room.getLocalStats()
        let video = try #require(
            local.statistics.values.first { $0.values["kind"] as? NSString == "video" && $0.type == "outbound-rtp" })
        let (bytes, rate) = (video.values["bytesSent"], video.values["framesPerSecond"])
        #expect(bytes as? Int == 10_000 && bytes as? UInt64 == 10_000 && bytes as? UInt32 == 10_000)
        #expect(bytes as? Double == 10_000 && bytes as? Float == 10_000)
        #expect((bytes as? NSNumber)?.uint64Value == 10_000 && (rate as? NSNumber)?.doubleValue == 29)
        #expect(rate as? Double == 29 && rate as? Int == 29 && rate as? String == nil)
        #expect(video.values["active"] as? Bool == true && (video.values["active"] as? NSNumber)?.boolValue == true)
        let voice = try #require(local.statistics.values.first { $0.values["audioLevel"] != nil })
        #expect(voice.values["audioLevel"] as? Double == 0.5 && voice.values["audioLevel"] as? Int == nil)
        #expect(JSONSerialization.isValidJSONObject(video.values))
    }

    @available(*, deprecated)
    @Test func `without sessions, reports are empty and have a time`() async {
        var none = RoomStatistics()
        none.time = 12
        scripted.link.statistics = none
        let report = await room.getLocalStats()
        #expect(report.statistics.isEmpty && report.timeStamp == 12)
        #expect(await room.getRemoteStats().statistics.isEmpty)
        #expect(await room.getLocalQualityStatsReport() == nil)
        #expect(await room.getRemoteQualityStatsReport() == nil)
    }

    @Test func `completions get the same, among the events of the room`() async throws {
        scripted.link.statistics = statistics()
        let ids = Collected<[String]>()
        room.getLocalStats { (report: StatisticsReport) in ids.append(report.statistics.keys.sorted()) }
        await eventually("the local report") { ids.count == 1 }
        room.getRemoteStats { (report: StatisticsReport) in ids.append(report.statistics.keys.sorted()) }
        await eventually("the remote report") { ids.count == 2 }
        #expect(ids.all[0] == (await room.getLocalStats()).statistics.keys.sorted())
        #expect(ids.all[1] == (await room.getRemoteStats()).statistics.keys.sorted())
    }

    @available(*, deprecated)
    @Test func `the former calls give the objects alone`() async {
        scripted.link.statistics = statistics()
        let counts = Collected<Int>()
        room.getLocalStatsReport { objects in counts.append(objects.count) }
        room.getRemoteStatsReport { objects in counts.append(objects.count) }
        room.getLocalStats { (objects: [String: Statistics]) in counts.append(objects.count) }
        room.getRemoteStats { (objects: [String: Statistics]) in counts.append(objects.count) }
        await eventually("four completions") { counts.count == 4 }
        let (local, remote) = (await room.getLocalStatsReport().count, await room.getRemoteStatsReport().count)
        #expect(counts.all.sorted() == [local, local, remote, remote].sorted() && local != remote)
    }

    // MARK: - Quality sessions

    @available(*, deprecated)
    @Test func `a quality session leaves out what does not apply, also in its encoded form`() async throws {
        scripted.link.statistics = statistics(index: 1)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let up = try encoder.encode(try #require(await room.getLocalQualityStatsReport()))
        #expect(
            String(decoding: up, as: UTF8.self)
                == #"{"direction":"up","index":1,"metrics":["#
                + #"{"bytesSent":10000,"framesEncoded":55,"framesSent":50,"packetsSent":100,"profile":"","srcFrames":60,"#
                + #""streamId":1,"type":"video"},"#
                + #"{"bytesSent":10000,"packetsSent":100,"srcAudioLevel":0.5,"streamId":2,"type":"audio"}]}"#)
        let down = try encoder.encode(try #require(await room.getRemoteQualityStatsReport()))
        #expect(
            String(decoding: down, as: UTF8.self)
                == #"{"direction":"down","index":1,"metrics":["#
                + #"{"bytesReceived":9000,"framesDecoded":29,"framesReceived":30,"packetsLost":10,"receiverId":4,"#
                + #""streamId":7,"type":"video"},"#
                + #"{"audioLevel":0.25,"bytesReceived":9000,"packetsLost":10,"receiverId":0,"streamId":8,"#
                + #""totalSamplesReceived":48000,"type":"audio"}]}"#)
    }

    @available(*, deprecated)
    @Test(arguments: [1: [""], 2: ["l", "h"], 3: ["l", "m", "h"]])
    func `layers have the profiles by which viewers choose them`(layers: Int, profiles: [String]) async throws {
        var statistics = statistics()
        let video = sent(stream: 1, .vp8, ssrc: 100)
        statistics.up?.sent = (0..<layers).map { rank in
            var layer = video
            (layer.rank, layer.layers) = (rank, layers)
            return layer
        }
        scripted.link.statistics = statistics
        #expect(await room.getLocalQualityStatsReport()?.metrics.map(\.profile) == profiles)
    }

    @Test func `the enumerations have the raw values of the original SDK`() {
        #expect(ConnectLiveSDK.SessionDirection.up.rawValue == "up")
        #expect(ConnectLiveSDK.SessionDirection.down.rawValue == "down")
        #expect(StreamMediaType.audio.rawValue == "audio" && StreamMediaType.video.rawValue == "video")
        #expect(
            [StreamSubType.none, .single, .multiple].map(\.rawValue) == ["none", "single", "multiple"])
    }

    // MARK: - onStat

    private var stats: [QualityStat] {
        _ = scripted.heard
        return scripted.listener.stats
    }

    @Test func `onStat tells what was counted since the one before`() throws {
        scripted.join()
        scripted.link.send(.statistics(statistics(scale: 1)))
        // One that waits would be replaced.
        let first = try #require(stats.first)
        scripted.link.send(.statistics(statistics(scale: 3)))
        let second = try #require(stats.last)
        #expect(stats.count == 2)
        let (before, now) = (try #require(first.localStat), try #require(second.localStat))
        #expect(before.bytesSentPerInterval == 100_000 && now.bytesSentPerInterval == 200_000)
        #expect(before.packetsSentPerInterval == 1000 && now.packetsSentPerInterval == 2000)
        #expect(now.currentRTT == 0.04 && now.index == 0)
        let video = try #require(now.videoMetrics.first)
        #expect(video.streamId == 1 && video.participantId == "me" && video.profile.isEmpty)
        #expect(video.bytesSent == 30_000 && video.packetsSent == 300 && video.packetsSentPerInterval == 200)
        #expect(video.framesEncoded == 165 && video.framesSent == 150 && video.srcFrames == 180 && video.pliCount == 2)
        #expect(video.frameWidth == 640 && video.frameHeight == 480 && video.framesPerSecond == 29)
        let audio = try #require(now.audioMetrics.first)
        #expect(audio.streamId == 2 && audio.packetsSentPerInterval == 200 && audio.srcAudioLevel == 0.5)
        let remote = try #require(second.remoteStat)
        #expect(remote.bytesReceivedPerInterval == 180_000 && remote.packetsReceivedPerInterval == 1800)
        #expect(remote.currentRTT == nil && remote.availableIncomingBitrate == nil)
        // A receiver without a stream has no metrics.
        let heard = try #require(remote.videoMetrics.first)
        #expect(remote.videoMetrics.count == 1 && heard.streamId == 7 && heard.participantId == "ann")
        #expect(heard.receiverId == 4 && heard.packetsLost == 30 && heard.packetsLostPerInterval == 20)
        #expect(heard.framesReceived == 90 && heard.framesDecoded == 87 && heard.pliCount == 3)
        let voice = try #require(remote.audioMetrics.first)
        #expect(voice.totalSamplesReceived == 144_000 && voice.audioLevel == 0.25 && voice.packetsLostPerInterval == 20)
    }

    @Test func `a session after another join counts from zero`() throws {
        scripted.join()
        scripted.link.send(.statistics(statistics(scale: 5)))
        scripted.link.send(.statistics(statistics(scale: 1, index: 1)))
        let stat = try #require(stats.last?.localStat)
        #expect(stat.index == 1 && stat.bytesSentPerInterval == 100_000)
        #expect(stat.videoMetrics.first?.packetsSentPerInterval == 100)
    }

    @Test func `while the queue is busy, a later onStat takes the place of the waiting one, and counts for both`() {
        scripted.join()
        scripted.link.send(.statistics(statistics(scale: 1)))
        #expect(stats.count == 1)
        scripted.holdingCallbacks {
            for scale in 2...5 { scripted.link.send(.statistics(statistics(scale: scale))) }
        }
        #expect(stats.count == 2)
        #expect(stats.last?.localStat?.bytesSentPerInterval == 400_000)
    }

    @Test func `onStat has no part for a session that does not exist`() {
        scripted.join()
        var statistics = statistics()
        statistics.up = nil
        scripted.link.send(.statistics(statistics))
        #expect(stats.count == 1 && stats[0].localStat == nil && stats[0].remoteStat != nil)
    }

    @Test func `no onStat follows the end`() {
        scripted.join()
        room.disconnect()
        scripted.link.send(.statistics(statistics()))
        #expect(stats.isEmpty)
    }

    @Test func `onStat comes each five seconds unless the configuration says otherwise`() {
        #expect(Config().qualityStatInterval == 5)
    }

    @Test(arguments: [(UInt(0), Int64(0)), (1, 1), (5, 5), (.max, 1_000_000)])
    func `an interval of 0 means never, and the longest one is eleven days`(interval: UInt, seconds: Int64) {
        var config = Config()
        config.qualityStatInterval = interval
        #expect(RoomOptions(config).statisticsInterval == .seconds(seconds))
    }
}
