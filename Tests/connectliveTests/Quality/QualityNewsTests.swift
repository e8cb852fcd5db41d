import ConnectLiveSDK
import MediaGraph
import RoomClient
import RoomProtocol
import Testing

@testable import connectlive

@Suite struct QualityNewsTests {
    private static func video(_ width: Int, _ height: Int, isEncoded: Bool = true) -> RoomStatistics.Published {
        var video = RoomStatistics.Published(streamId: 1, isVideo: true)
        (video.codec, video.width, video.height, video.isEncoded) = (
            isEncoded ? "VP8" : "H264", width, height, isEncoded
        )
        (video.framesEncoded, video.framesSent) = (100, 100)
        return video
    }

    private static func statistics(_ video: RoomStatistics.Published) -> RoomStatistics {
        var statistics = RoomStatistics()
        statistics.published = [video]
        statistics.sendingBitsPerSecond = 300_000
        return statistics
    }

    @Test func `a line names the size before, and a slow processor is told what helps`() {
        var news = QualityNews()
        #expect(news.line(VideoQuality(width: 1280, height: 720, framesPerSecond: 30)) == nil)
        let network = VideoQuality(
            width: 640, height: 360, framesPerSecond: 15, limitation: .network, limitedBitsPerSecond: 640_000)
        #expect(news.line(network) == "the network carries 640 kbit/s: 640x360 at 15 (before: 1280x720 at 30)")
        #expect(news.line(network) == nil)
        let slow = VideoQuality(width: 320, height: 180, framesPerSecond: 15, limitation: .processor)
        #expect(
            news.line(slow)
                == "the processor is too slow: 320x180 at 15 (before: 640x360 at 15); reduce --size, --fps or --layers, or "
                + "pass --codec h264 if 'connectlive doctor' shows a hardware encoder")
    }

    @Test func `a size or rate that rises is told as such, with the reason why it is not full yet`() {
        func change(
            _ then: (Int, Int, Double), _ now: (Int, Int, Double), _ limitation: QualityLimitation,
            _ carried: Int? = nil
        ) -> String? {
            var news = QualityNews()
            func look(_ size: (Int, Int, Double)) -> String? {
                news.line(
                    VideoQuality(
                        width: size.0, height: size.1, framesPerSecond: size.2, limitation: limitation,
                        limitedBitsPerSecond: carried))
            }
            _ = look(then)
            return look(now)
        }
        #expect(
            change((640, 360, 30), (960, 540, 30), .processor)
                == "quality rose: 960x540 at 30 (before: 640x360 at 30); not full yet, because the processor is too slow"
        )
        #expect(
            change((640, 360, 15), (640, 360, 24), .network, 900_000)
                == "quality rose: 640x360 at 24 (before: 640x360 at 15); not full yet, because the network carries 900 kbit/s"
        )
        #expect(
            change((640, 360, 15), (640, 360, 24), .network)?.hasSuffix(
                "; not full yet, although the network carries more again") == true)
        #expect(
            change((640, 360, 30), (960, 540, 15), .network, 900_000)
                == "the network carries 900 kbit/s: 960x540 at 15 (before: 640x360 at 30)")
        #expect(
            VideoQuality(width: 960, height: 540).change(from: VideoQuality(width: 640, height: 360))
                == "full quality: 960x540 (before: 640x360)")
    }

    @Test func `fewer bits of the same size are news after two seconds, once, and so is their end`() {
        var news = QualityNews()
        var quality = VideoQuality(width: 1280, height: 720, framesPerSecond: 30)
        func lines(_ looks: Int) -> [String] { (0..<looks).compactMap { _ in news.line(quality, wish: 1_500_000) } }
        #expect(lines(10) == [])
        (quality.limitation, quality.limitedBitsPerSecond) = (.network, 1_400_000)
        #expect(lines(10) == [])
        quality.limitedBitsPerSecond = 280_000
        #expect(lines(2) == [])
        #expect(lines(10) == ["the network carries 280 kbit/s: 1280x720 at 30, with fewer bits"])
        quality.limitedBitsPerSecond = nil
        #expect(lines(10) == [])
        quality.limitation = .none
        #expect(lines(10) == ["full quality: 1280x720 at 30"])
    }

    @Test func `a lower bitrate of audio is news after a second, once, and so is its end`() async {
        let news = RoomNews()
        var audio = RoomStatistics.Published(streamId: 1, isVideo: false)
        func lines(_ looks: Int) async -> [String] {
            var statistics = Self.statistics(audio)
            statistics.sendingBitsPerSecond = 40_000
            var lines: [String] = []
            for _ in 0..<looks { lines += await news.outgoingLines(statistics) }
            return lines
        }
        #expect(await lines(10) == [])
        audio.wishedBitsPerSecond = 64_000
        #expect(await lines(10) == [])
        (audio.limitedBitsPerSecond, audio.limitation) = (48_000, .network)
        #expect(await lines(10) == [])
        audio.limitedBitsPerSecond = 11_390
        #expect(await lines(2) == [])
        #expect(await lines(10) == ["the network carries 40 kbit/s: audio at 11 kbit/s"])
        #expect(
            StatusLine.publishing(Self.statistics(audio), .live)
                == "publishing audio | 11 kbit/s, because the network carries no more")
        audio.limitedBitsPerSecond = 48_000
        #expect(await lines(10) == [])
        (audio.limitedBitsPerSecond, audio.limitation) = (64_000, .none)
        #expect(await lines(10) == ["full quality: audio at 64 kbit/s"])
        #expect(StatusLine.publishing(Self.statistics(audio), .live) == "publishing audio")
    }

    @Test func `a lower bitrate of audio after an outage is news if it lasts for ten seconds`() async {
        let news = RoomNews()
        var audio = RoomStatistics.Published(streamId: 1, isVideo: false)
        audio.wishedBitsPerSecond = 64_000
        var statistics = Self.statistics(audio)
        func lines(_ looks: Int) async -> [String] {
            var lines: [String] = []
            for _ in 0..<looks { lines += await news.outgoingLines(statistics) }
            return lines
        }
        func limit(_ rate: Double?) {
            statistics.published[0].limitedBitsPerSecond = rate
            statistics.published[0].limitation = rate == nil ? .none : .network
        }
        #expect(await lines(10) == [])
        statistics.interruptedSeconds = 14
        #expect(await lines(10) == [])
        statistics.interruptedSeconds = nil
        limit(8_000)
        #expect(await lines(15) == [])
        limit(nil)
        #expect(await lines(30) == [])
        // A short one is told when it is over.
        statistics.outages = [RoomStatistics.Outage(start: 60, seconds: 2.2, isOutgoing: true)]
        limit(8_000)
        #expect(await lines(19) == [])
        #expect(await lines(10) == ["the network carries 300 kbit/s: audio at 8 kbit/s"])
        limit(nil)
        #expect(await lines(10) == ["full quality: audio at 64 kbit/s"])
    }

    @Test func `losses are named as the reason`() {
        var video = Self.video(640, 360)
        (video.limitation, video.recentLoss, video.wishedBitsPerSecond) = (.network, 0.083, 1_200_000)
        #expect(
            StatusLine.quality(Self.statistics(video))?.description
                == "the network loses 8 % of packets and carries 300 kbit/s: 640x360")
        (video.framesSkippedPerSecond, video.framesDroppedForRate) = (3.2, 500)
        #expect(StatusLine.publishing(Self.statistics(video), .live).contains(": 640x360, 3 frames/s skipped |"))
        video.framesSkippedPerSecond = 0
        #expect(!StatusLine.publishing(Self.statistics(video), .live).contains("skipped"))
    }

    @Test func `a viewer's status line without frames has the cause instead of figures of the time before`() {
        var video = RoomStatistics.Received(streamId: 3, participantId: "ada", isVideo: true)
        (video.codec, video.width, video.height, video.framesRendered) = ("VP8", 640, 360, 100)
        var statistics = RoomStatistics()
        statistics.received = [video]
        #expect(StatusLine.viewing(statistics) == "VP8 640x360 | no frames at present")
        statistics.received[0].limitation = .init(cause: .publisher(.connection), lacksFrames: true)
        #expect(
            StatusLine.viewing(statistics)
                == "VP8 640x360 | no frames at present: its publisher's connection is lost")
    }

    @Test func `a network that carries all that the video could use is not named with its rate`() {
        var video = Self.video(480, 270)
        (video.limitation, video.wishedBitsPerSecond) = (.network, 1_200_000)
        var statistics = Self.statistics(video)
        #expect(
            StatusLine.quality(statistics)?.description.hasPrefix("the network carries 300 kbit/s: 480x270") == true)
        statistics.sendingBitsPerSecond = 3_979_000
        #expect(
            StatusLine.quality(statistics)?.description.hasPrefix("the network carries more again: 480x270") == true)
    }

    @Test func `layers that are off from the start are news after some seconds`() {
        var quality = VideoQuality(width: 320, height: 180, limitation: .network, limitedBitsPerSecond: 300_000)
        quality.layers = [
            .init(width: 320, height: 180, isActive: true), .init(width: 640, height: 360, isActive: false),
        ]
        var news = QualityNews()
        let lines = (0..<100).compactMap { _ in news.line(quality) }
        #expect(lines == ["the network carries 300 kbit/s: 320x180, without 640x360"])
    }

    @Test func `layers that begin one after the other are no news, and one that ends later is`() {
        func quality(_ active: Int, _ limitation: QualityLimitation = .none) -> VideoQuality {
            var quality = VideoQuality(width: 320, height: 180, limitation: limitation)
            quality.layers = (0..<3).map { .init(width: 160 << $0, height: 90 << $0, isActive: $0 < active) }
            return quality
        }
        var news = QualityNews()
        for active in 1...3 { #expect(news.line(quality(active)) == nil) }
        #expect(news.line(quality(1, .subscribers))?.hasPrefix("no viewer gets 320x180 and 640x360: 160x90 (") == true)
        let rise = "quality rose: 160x90 and 320x180, without 640x360 (before: 160x90, without 320x180 and 640x360); "
        #expect(news.line(quality(2, .subscribers)) == rise + "not full yet, because no viewer gets 640x360")
    }

    @Test func `layers that no viewer gets are named, and the others are not`() {
        var quality = VideoQuality(width: 320, height: 180, limitation: .subscribers)
        quality.layers = [
            .init(width: 320, height: 180, isActive: true), .init(width: 640, height: 360, isActive: false),
        ]
        #expect("\(quality)" == "no viewer gets 640x360: 320x180")
    }

    @Test func `frames of a passing source that are left out have a line, and so has their return`() async {
        let news = RoomNews()
        var video = Self.video(1280, 720, isEncoded: false)
        #expect(await news.outgoingLines(Self.statistics(video)) == [])
        video.limitation = .network
        #expect(
            await news.outgoingLines(Self.statistics(video)) == [
                "the network carries 300 kbit/s: frames of the source's H264 are left out; --codec vp8 or --layers 3 encodes it "
                    + "with fewer bits"
            ])
        video.limitation = .none
        #expect(await news.outgoingLines(Self.statistics(video)) == ["the H264 of the source passes whole again"])
    }

    @Test func `a video that is too small for its layers is told so once`() async {
        let news = RoomNews(layers: 3)
        let lines = [
            await news.outgoingLines(Self.statistics(Self.video(320, 180))),
            await news.outgoingLines(Self.statistics(Self.video(320, 180))),
        ]
        #expect(
            lines.flatMap(\.self) == [
                "The video is 320x180, too small for 3 sizes, so it is sent in one size. Two sizes need 480x270, and three need "
                    + "960x540."
            ])
    }

    @Test func `during an outage, the status line tells that alone`() async {
        var statistics = Self.statistics(Self.video(640, 360))
        statistics.published[0].limitation = .network
        statistics.interruptedSeconds = 12.2
        #expect(
            StatusLine.publishing(statistics, .live) == "publishing VP8 640x360 | nothing has reached the room for 12 s"
        )
        #expect(StatusLine.viewing(statistics) == "nothing has arrived from the room for 12 s")
        #expect(await RoomNews().outgoingLines(statistics) == [])
        statistics.path = .init(local: .relay, remote: .host, transport: "UDP", relay: "192.0.2.1:3478")
        #expect(
            StatusLine.viewing(statistics)
                == "nothing has arrived from the room for 12 s, via TURN over UDP at 192.0.2.1:3478")
        (statistics.lostSeconds, statistics.isServerLost) = (20, true)
        statistics.published = []
        #expect(StatusLine.publishing(statistics, .live) == "the server has been lost for 20 s")
        statistics.isServerLost = false
        #expect(StatusLine.publishing(statistics, .live) == "media has been lost for 20 s")
    }

    @Test func `a viewer without frames is told about the link, and not to look for a publisher`() {
        typealias Limitation = RoomStatistics.Received.Limitation
        let link = ViewCommand.advice(Limitation(cause: .link(bitsPerSecond: 90_000), lacksFrames: true))
        #expect(link?.hasPrefix("There is video, but your link carries 90 kbit/s. Publish it with fewer bits") == true)
        let publisher = ViewCommand.advice(Limitation(cause: .publisher(.network), lacksFrames: true))
        #expect(publisher?.hasPrefix("There is video, but its publisher's link carries nothing of it.") == true)
        #expect(ViewCommand.advice(Limitation(cause: .view)) == nil && ViewCommand.advice(nil) == nil)
    }
}
