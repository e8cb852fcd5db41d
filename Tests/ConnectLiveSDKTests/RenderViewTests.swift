import Foundation
import MediaGraph
import RoomClient
import Synchronization
import Testing
import TestSupport

@testable import ConnectLiveSDK

@Suite struct RenderViewTests {
    @Test func `an image in a missing folder is refused immediately`() {
        let error = #expect(throws: ConnectLiveError.self) { try UIRenderView(imagePath: "/nonexistent/frame.png") }
        #expect(error?.errorDescription?.contains("/nonexistent") == true)
        #expect(error?.errorDescription?.hasSuffix("[file.unwritable]") == true)
    }

    @Test func `an image that cannot be written is tried once and reported`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("view-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let view = try UIRenderView(imagePath: folder.appendingPathComponent("frame.png").path)
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

    private var pictures: MediaRequest {
        var options = MediaRequest.testPattern(frames: 0)
        options.hasAudio = false
        return options
    }
}
