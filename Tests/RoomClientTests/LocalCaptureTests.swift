import Foundation
import MediaGraph
import RoomProtocol
import Testing
import TestSupport

@testable import RoomClient

/// The bundled clip under another name, so that processes with it open can be distinguished from others.
private final class Clip {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("capture-\(UUID().uuidString).mp4").path
        try FileManager.default.copyItem(atPath: Checkout.clip, toPath: path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Whether this process has the clip open.
    var isOpen: Bool {
        let files = FileManager.default
        let descriptors = (try? files.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return descriptors.contains { (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
    }
}

@Suite(.serialized, .timeLimit(.minutes(1)))
struct LocalCaptureTests {
    @Test func `a stop during a start returns when the source is free`() async throws {
        for _ in 0..<5 {
            let clip = try Clip()
            let capture = LocalCapture(MediaRequest.file(clip.path, isLooping: true))
            let start = Task { () async -> RoomError? in
                do throws(RoomError) {
                    try await capture.start()
                    return nil
                } catch {
                    return error
                }
            }
            while !clip.isOpen, !capture.isRunning { await Task.yield() }
            await capture.stop()
            #expect(!clip.isOpen)
            #expect(!capture.isRunning && !capture.isStarting)
            if let error = await start.value { #expect(error.code == .outOfOrder) }
        }
    }

    @Test func `an edit may ask for the request that it changes, and toggles add up`() async throws {
        let capture = LocalCapture(MediaRequest.testPattern())
        let toggle: @Sendable (inout MediaRequest) -> Void = { $0.isMirrored = !capture.requested.isMirrored }
        try await capture.change(toggle)
        #expect(!capture.requested.isMirrored)
        for round in 1...20 {
            capture.changeLater(toggle)
            #expect(capture.requested.isMirrored == !round.isMultiple(of: 2))
        }
        try await capture.change { _ in }
        #expect(!capture.requested.isMirrored)
    }

    @Test func `an impossible edit is no longer part of the newest request, the others are`() async throws {
        let capture = LocalCapture(MediaRequest.testPattern())
        try await capture.start()
        let failing = Task { try await capture.change { ($0.source, $0.file) = (.file, "/nonexistent.mp4") } }
        try await capture.change { $0.isMirrored = !$0.isMirrored }
        await #expect(throws: RoomError.self) { try await failing.value }
        #expect(capture.requested.source == .testPattern && !capture.requested.isMirrored)
        await capture.stop()
    }

    @Test func `all callers of stop wait for the end, and statistics remain`() async throws {
        let capture = LocalCapture(MediaRequest.testPattern(frames: 0))
        try await capture.start()
        while capture.encoderStatistics.encoded == 0 { await Task.yield() }
        async let first: Void = capture.stop()
        async let second: Void = capture.stop()
        _ = await (first, second)
        let encoded = capture.encoderStatistics.encoded
        #expect(encoded > 0)
        await capture.stop()
        #expect(capture.encoderStatistics.encoded == encoded)
    }
}
