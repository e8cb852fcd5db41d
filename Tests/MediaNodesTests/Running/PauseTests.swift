import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct PauseTests {
        @Test("A paused pipeline delivers nothing, and its time stops")
        func pause() async throws {
            let clock = SteppedClock()
            let watched = try await Watched(
                chain(.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60), .frames("view")), on: clock
            )
            let pipeline = watched.pipeline
            #expect(pipeline.state == .prepared)
            let most = Mutex(10)
            clock.run { _ in watched.count() < most.withLock { $0 } }
            try await pipeline.start()
            await eventually("the first frames") { watched.count() == 10 }
            clock.waitForPending(1)
            await pipeline.pause()
            #expect(pipeline.state == .paused)
            let standing = pipeline.graph.context.pipeline.runningTime
            most.withLock { $0 = 20 }
            clock.advance(by: 1, pending: 0)
            #expect(watched.count() == 10)
            #expect(pipeline.graph.context.pipeline.runningTime == standing)
            await pipeline.resume()
            #expect(pipeline.state == .running)
            await eventually("it goes on") { watched.count() == 20 }
            #expect(abs(Int(pipeline.graph.context.pipeline.runningTime - standing) - 9 * 1_000_000_000 / 60) < 1000)
            await pipeline.stop()
            #expect(pipeline.state == .stopped)
            let pictures = watched.pictures()
            #expect(pictures.map(\.number) == (0..<20).map { UInt32($0) })
            // The next frame has the time at which the pipeline continues.
            let steps = zip(pictures, pictures.dropFirst()).map { $1.captureTime.seconds(since: $0.captureTime) }
            #expect(steps.enumerated().allSatisfy { abs($1 - ($0 == 9 ? 1 : 1.0 / 60)) < 0.000_001 }, "\(steps)")
            #expect(pictures.allSatisfy { $0.wait == 0 }, "\(pictures.map(\.wait))")
        }
    }
}
