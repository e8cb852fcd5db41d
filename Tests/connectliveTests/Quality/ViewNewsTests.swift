import RoomClient
import RoomProtocol
import Testing

@testable import connectlive

@Suite struct ViewNewsTests {
    private typealias Limitation = RoomStatistics.Received.Limitation

    private var news = ViewNews()

    /// The lines after a few looks at one video.
    private mutating func look(
        _ width: Int, _ height: Int, _ limitation: Limitation? = nil, times: Int = 4, loss: Double = 0,
        frames: Int = 0
    ) -> [String] {
        var video = RoomStatistics.Received(streamId: 3, participantId: "ada", isVideo: true)
        (video.width, video.height, video.limitation) = (width, height, limitation)
        (video.recentLoss, video.framesReceived) = (loss, frames)
        var statistics = RoomStatistics()
        statistics.received = [video]
        return (0..<times).flatMap { _ in news.lines(statistics) }
    }

    private func link(_ rate: Int, lacksFrames: Bool = false) -> Limitation {
        Limitation(cause: .link(bitsPerSecond: rate), lacksFrames: lacksFrames)
    }

    @Test mutating func `a viewer's line names the cause, and the size before`() {
        #expect(look(640, 360) == [])
        #expect(
            look(320, 180, link(640_000)) == [
                "Video 3 of ada: your link carries 640 kbit/s: 320x180 instead of 640x360"
            ])
        #expect(look(320, 180, link(700_000)) == [])
        #expect(look(640, 360) == ["Video 3 of ada: full quality: 640x360"])
    }

    @Test mutating func `the largest layer is named although it has never been seen`() {
        var limitation = Limitation(cause: .view)
        (limitation.fullWidth, limitation.fullHeight) = (1280, 720)
        #expect(
            look(320, 180, limitation) == ["Video 3 of ada: your view asks for no more: 320x180 instead of 1280x720"])
    }

    @Test mutating func `missing frames and a silent publisher have lines of their own`() {
        #expect(look(640, 360) == [])
        #expect(
            look(640, 360, link(90_000, lacksFrames: true))
                == ["Video 3 of ada: your link carries 90 kbit/s: frames are missing"])
        #expect(
            look(640, 360, Limitation(cause: .publisher(nil), lacksFrames: true))
                == ["Video 3 of ada: its publisher sends nothing"])
        #expect(
            look(640, 360, Limitation(cause: .publisher(.connection), lacksFrames: true))
                == ["Video 3 of ada: its publisher's connection is lost"])
        #expect(look(640, 360) == ["Video 3 of ada: frames arrive again: 640x360"])
    }

    @Test mutating func `a lost connection of the publisher is no news once frames arrive again`() {
        #expect(look(640, 360) == [])
        let lost = Limitation(cause: .publisher(.connection), lacksFrames: true)
        for frames in 1...4 { #expect(look(640, 360, lost, times: 1, frames: 10 * frames) == []) }
        // They end.
        #expect(look(640, 360, lost, frames: 40) == ["Video 3 of ada: its publisher's connection is lost"])
    }

    @Test mutating func `losses are named as the reason, on the own link and on the publisher's`() {
        #expect(look(640, 360) == [])
        #expect(
            look(320, 180, link(640_000), loss: 0.081) == [
                "Video 3 of ada: your link loses 8 % of packets and carries 640 kbit/s: 320x180 instead of 640x360"
            ])
        #expect(
            look(640, 360, Limitation(cause: .publisher(.loss)))
                == ["Video 3 of ada: its publisher's link loses packets: 640x360, with fewer bits"])
    }

    @Test mutating func `a first figure that says nothing is left out, and the settled one follows`() {
        #expect(look(640, 360) == [])
        #expect(
            look(640, 360, link(0, lacksFrames: true), loss: 0.13)
                == ["Video 3 of ada: your link loses 13 % of packets: frames are missing"])
        // Ten seconds after the line.
        #expect(look(640, 360, link(332_000, lacksFrames: true), times: 18) == [])
        #expect(
            look(640, 360, link(332_000, lacksFrames: true))
                == ["Video 3 of ada: your link carries 332 kbit/s: frames are missing"])
        #expect(look(640, 360, link(332_000, lacksFrames: true), times: 100) == [])
    }

    @Test mutating func `a figure that is off by a factor of two is corrected, each ten seconds at most`() {
        #expect(look(640, 360) == [])
        #expect(
            look(320, 180, link(640_000))
                == ["Video 3 of ada: your link carries 640 kbit/s: 320x180 instead of 640x360"])
        #expect(look(320, 180, link(330_000), times: 100) == [])
        #expect(
            look(320, 180, link(320_000), times: 10)
                == ["Video 3 of ada: your link carries 320 kbit/s: 320x180 instead of 640x360"])
        #expect(look(320, 180, link(700_000), times: 18) == [])
        #expect(
            look(320, 180, link(700_000))
                == ["Video 3 of ada: your link carries 700 kbit/s: 320x180 instead of 640x360"])
        // One that passes is none, and neither is one that says nothing.
        #expect(look(320, 180, link(700_000), times: 30) == [])
        #expect(look(320, 180, link(100_000), times: 9) == [])
        #expect(look(320, 180, link(700_000), times: 30) == [])
        #expect(look(320, 180, link(0), times: 30) == [])
    }

    @Test mutating func `an unknown rate of a link that loses nothing is too little`() {
        #expect(look(640, 360) == [])
        #expect(
            look(640, 360, link(400, lacksFrames: true))
                == ["Video 3 of ada: your link carries too little: frames are missing"])
    }

    @Test mutating func `the publisher's own reason is named, and a smaller size without one names nobody`() {
        #expect(look(640, 360) == [])
        #expect(
            look(320, 180, Limitation(cause: .publisher(.network)))
                == ["Video 3 of ada: its publisher's link carries no more: 320x180 instead of 640x360"])
        #expect(
            look(320, 180, Limitation(cause: .publisher(.processor)))
                == ["Video 3 of ada: its publisher's processor is too slow for more: 320x180 instead of 640x360"])
        #expect(look(320, 180) == ["Video 3 of ada: now 320x180 instead of 640x360"])
    }

    @Test mutating func `a size that passes in a second is no news`() {
        #expect(look(640, 360) == [])
        #expect(look(320, 180, link(640_000), times: 2) == [])
        #expect(look(640, 360) == [])
    }
}
