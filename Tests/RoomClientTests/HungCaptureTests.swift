import Dispatch
import GStreamerKit
import MediaGraph
import MediaNodes
import RoomProtocol
import TestSupport
import Testing

@testable import RoomClient

/// Local media whose driver does not respond.
@Suite(.timeLimit(.minutes(1)))
struct HungCaptureTests {
    /// The question of a start that is never answered.
    enum Question: CaseIterable {
        case inspection, plan
    }

    @Test(arguments: Question.allCases)
    func `a stop ends a start whose driver hangs`(_ question: Question) async throws {
        let end = DispatchSemaphore(value: 0)
        let isAsked = AtomicBool()
        let hang: @Sendable () async throws(MediaError) -> Void = { () throws(MediaError) in
            try await offPoolInTime("The question", within: 3600, grace: 0) { () throws(MediaError) in
                isAsked.raise()
                end.wait()
            }
        }
        let machine = CaptureMachine(
            inspect: { request throws(MediaError) in
                if question == .inspection { try await hang() }
                return .init(hasVideo: request.hasVideo, hasAudio: request.hasAudio)
            },
            makePipeline: { _, _, _ throws(MediaError) in
                try await hang()
                throw StubMachine.error
            },
            plan: { _, _ in throw StubMachine.error })
        let capture = LocalCapture(MediaRequest.camera("camera"), on: machine)
        let start = Task { try await capture.start() }
        await eventually("the question") { isAsked.value }
        await capture.stop()
        let error = await #expect(throws: RoomError.self) { try await start.value }
        #expect(error?.code == RoomError.Code.outOfOrder)
        #expect(!capture.isRunning)
        end.signal()
    }

    @Test func `a start whose driver hangs fails in time`() async throws {
        let end = DispatchSemaphore(value: 0)
        let machine = CaptureMachine(
            inspect: { _ throws(MediaError) in
                try await offPoolInTime("The question", within: 0.01) { () throws(MediaError) in
                    end.wait()
                    return .init(hasVideo: true, hasAudio: true)
                }
            },
            makePipeline: { _, _, _ throws(MediaError) in throw StubMachine.error },
            plan: { _, _ in throw StubMachine.error })
        let capture = LocalCapture(MediaRequest.camera("camera"), on: machine)
        let error = await #expect(throws: RoomError.self) { try await capture.start() }
        #expect(error?.code.name == MediaError.Code.pipelineStalled)
        end.signal()
    }
}
