import GStreamerKit
import MediaGraph
import TestFixtures
import TestSupport

@testable import MediaNodes

extension MediaPipeline {
    /// A pipeline on a clock that the test moves.
    convenience init(
        _ graph: MediaGraph, bindings: NodeBindings = NodeBindings(), registry: NodeRegistry = .builtIn,
        on clock: SteppedClock
    ) async throws(MediaError) {
        try await self.init(graph, bindings: bindings, registry: registry, limits: Limits(), clock: clock.clock)
    }

    /// The frames that its encoders captured.
    var framesCaptured: Int { statistics.encoders.values.map(\.captured).max() ?? 0 }

    /// Whether every captured frame is encoded. Those of its own sources are captured when they wait for the clock.
    var encodersAreIdle: Bool { statistics.encoders.values.allSatisfy { $0.inFlight == 0 } }
}

extension SteppedClock {
    /// A pipeline of handles that runs on a clock of its own, as fast as its encoders.
    static func running(
        @CompositionBuilder _ compose: () -> Composition
    ) async throws -> (MediaPipeline, SteppedClock) {
        let clock = SteppedClock()
        let pipeline = try await MediaPipeline(compose(), limits: Limits(), clock: clock.clock)
        clock.run(pipeline)
        try await pipeline.start()
        return (pipeline, clock)
    }

    /// Runs a pipeline at the pace of its encoders, so that none of them drops a frame. With several `sources`, each step
    /// waits for all of them, until one has delivered its last of so many `frames`.
    func run(
        _ pipeline: MediaPipeline, sources: Int = 1, frames: Int = .max,
        whenever isSettled: @escaping @Sendable () -> Bool = { true }
    ) {
        // The closure must not retain the clock, which runs until it is released.
        run { [weak self, weak pipeline] _ in
            guard let self, let pipeline else { return true }
            return (pending >= sources || pipeline.framesCaptured >= frames)
                && pipeline.encodersAreIdle && isSettled()
        }
    }

    /// The same, at the pace of every queue too, so that none of them drops a frame. Except for those of recorders, which
    /// keep frames of one stream until the other has come as far.
    func run(
        _ pipeline: MediaPipeline, sources: Int = 1, frames: Int = .max, emptying watch: NodeWatch,
        whenever isSettled: @escaping @Sendable () -> Bool = { true }
    ) {
        run(pipeline, sources: sources, frames: frames) { [weak pipeline] in
            let recorders = pipeline?.statistics.recorders ?? [:]
            return isSettled() && watch.sample().allSatisfy { $0.queued == 0 || recorders[$0.node] != nil }
        }
    }

    /// The same, at the pace of a consumer of every encoded frame too.
    func run<Frame: Sendable>(
        _ pipeline: MediaPipeline, into frames: Collected<Frame>,
        whenever isSettled: @escaping @Sendable () -> Bool = { true }
    ) {
        run(pipeline) { [weak pipeline] in frames.count == pipeline?.framesCaptured && isSettled() }
    }
}
