import Dispatch
import GStreamerKit
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Questions to drivers and file systems that may never respond.
    @Suite struct OffPoolLimitTests {
        @Test func `a question that hangs ends at its limit`() async {
            let end = DispatchSemaphore(value: 0)
            let error = await #expect(throws: MediaError.self) {
                try await offPoolInTime("The plan", within: 0.01) { () throws(MediaError) in end.wait() }
            }
            #expect(error?.code == MediaError.Code.pipelineStalled)
            #expect(error?.message.hasPrefix("The plan took longer than 0.01 s") == true)
            end.signal()
        }

        @Test func `a question that hangs ends after a cancellation`() async {
            let end = DispatchSemaphore(value: 0)
            let begun = AtomicBool()
            let task = Task {
                try await offPoolInTime("The plan", within: 3600, grace: 0.01) { () throws(MediaError) in
                    begun.raise()
                    end.wait()
                }
            }
            await eventually("the question") { begun.value }
            task.cancel()
            await #expect(throws: MediaError.self) { try await task.value }
            end.signal()
        }

        @Test func `a question that is cancelled before it begins may still be answered`() async throws {
            let task = Task {
                try await offPoolInTime("The plan", within: 3600, grace: 3600) { () throws(MediaError) in 7 }
            }
            task.cancel()
            #expect(try await task.value == 7)
        }
    }
}
