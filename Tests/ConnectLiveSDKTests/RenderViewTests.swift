import Foundation
import MediaGraph
import RoomClient
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import ConnectLiveSDK

@Suite struct RenderViewTests {
    @Test func `an image in a missing folder is refused immediately`() {
        let error = #expect(throws: ConnectLiveError.self) { try FrameView(imagePath: "/nonexistent/frame.png") }
        #expect(error?.errorDescription?.contains("/nonexistent") == true)
        #expect(error?.errorDescription?.hasSuffix("[file.unwritable]") == true)
    }

    @Test func `an image that cannot be written is tried once and reported`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("view-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let view = try FrameView(imagePath: folder.appendingPathComponent("frame.png").path)
        try FileManager.default.removeItem(at: folder)
        let events = Mutex<[String]>([])
        view.onError = { error in events.withLock { $0.append("error \(error.code)") } }
        view.onFrame = { _ in events.withLock { $0.append("frame") } }
        let media = ConnectLive.createLocalMedia(pictures)
        media.video.attach(view)
        try await media.start()
        try await requireEventually("5 frames") { events.withLock { $0.count { $0 == "frame" } } >= 5 }
        await media.stop()
        #expect(events.withLock { $0 }.prefix(2) == ["error 2031", "frame"])
        #expect(events.withLock { $0.count { $0 != "frame" } } == 1)
    }

    @Test func `a view is active from its first frame to 2 s after its last one, or until it is detached`() {
        var activity = ViewActivity()
        var log: [String] = []
        func note(_ step: String, _ result: Bool) { log.append("\(step) \(result) \(activity.isActive)") }
        note("idle", activity.check(at: .seconds(1)) == nil)
        note("first", activity.frame(at: .seconds(10)))
        note("second", activity.frame(at: .seconds(11)))
        note("early", activity.check(at: .seconds(12)) == .seconds(1))
        note("late", activity.check(at: .seconds(13)) == nil)
        note("end", activity.end())
        note("return", activity.frame(at: .seconds(20)))
        note("end", activity.end())
        note("ended", activity.check(at: .seconds(20.5)) == nil)
        note("return", activity.frame(at: .seconds(21)))
        #expect(
            log == [
                "idle true false", "first true true", "second false true", "early true true", "late true false",
                "end false false", "return true true", "end true false", "ended true false", "return true true",
            ])
    }

    @Test func `the application is told when a view becomes active, is detached, and is silent`() async throws {
        let changes = Collected<Bool>()
        let view = await MainActor.run {
            let view = UIRenderView()
            view.onActive = { changes.append($0) }
            return view
        }
        let media = ConnectLive.createLocalMedia(pictures)
        media.attach(view)
        #expect(view.isAssignedStream && changes.all.isEmpty)
        try await media.start()
        try await requireEventually("active") { changes.all == [true] }
        media.detach()
        try await requireEventually("detached") { changes.all == [true, false] }
        media.attach(view)
        try await requireEventually("active again") { changes.all == [true, false, true] }
        await media.stop()
        try await requireEventually("silent") { changes.all == [true, false, true, false] }
        #expect(view.isAssignedStream)
    }

    @MainActor @Test func `views are kept in sets, and know the layout of the application`() {
        let views: Set<UIRenderView> = [UIRenderView(), UIRenderView()]
        #expect(views.count == 2)
        let view = UIView(frame: CGRect(x: 1, y: 2, width: 30, height: 40))
        #expect(view.bounds == CGRect(x: 0, y: 0, width: 30, height: 40))
        view.bounds.size.width = 50
        #expect(view.frame == CGRect(x: 1, y: 2, width: 50, height: 40))
        #expect(UIRenderView().videoContentMode == .scaleAspectFit && UIView.ContentMode.bottomRight.rawValue == 12)
    }

    @Test func `a view draws frames in a terminal, and restores it`() async throws {
        let pipe = Pipe()
        let output = Mutex(Data())
        pipe.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            output.withLock { $0 += data }
        }
        var view: FrameView? = FrameView(terminal: pipe.fileHandleForWriting)
        view?.setVideoContentMode(.scaleToFill)
        let media = ConnectLive.createLocalMedia(pictures)
        if let view { media.attach(view) }
        try await media.start()
        try await requireEventually("half blocks") {
            output.withLock { String(decoding: $0, as: UTF8.self).contains("▀") }
        }
        media.detach()
        view = nil
        try await requireEventually("the cursor") {
            output.withLock { String(decoding: $0, as: UTF8.self).hasSuffix("\u{1b}[?25h\r\n") }
        }
        pipe.fileHandleForReading.readabilityHandler = nil
        await media.stop()
    }

    @Test func `a view that nobody holds is released with its local media, without being detached`() async throws {
        let pipe = Pipe()
        var media: (any LocalMedia)? = ConnectLive.createLocalMedia(pictures)
        var view: FrameView? = FrameView(terminal: pipe.fileHandleForWriting)
        weak let target = view?.target
        if let view { media?.video.attach(view) }
        view = nil
        #expect(target != nil)
        media = nil
        await eventually("the release") { target == nil }
    }

    @Test func `a view of another's video is free when the room is released`() throws {
        let info = StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "camera")
        let view = FrameView()
        do {
            let link = ScriptedLink()
            let room = RoomSession(delegate: nil) { onEvent in
                link.setReceiver(onEvent)
                return link
            }
            room.connect(roomId: "scripted")
            link.send(.connected(participant: "me", others: [ParticipantInfo(id: "ann", streams: [info])]))
            try #require(room.remoteParticipants["ann"]?.videos[7]).attach(view)
            #expect(view.isAssignedStream)
        }
        #expect(!view.isAssignedStream)
    }

    private var pictures: MediaRequest {
        var options = MediaRequest.testPattern(frames: 0)
        options.hasAudio = false
        return options
    }
}
