import Dispatch
import GStreamerKit
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct TimeoutTests {
        private final class Held: Sendable {}

        private let queue = DispatchQueue(label: "test.timeouts")

        @Test("A timeout runs its action once, and again if it is set again")
        func fires() async {
            let count = Collected<Int>()
            let timeout = Timeout(at: .now(), on: queue) { timeout in
                count.append(count.count)
                if count.count < 3 { timeout.set(.now()) }
            }
            await eventually("three times") { count.count == 3 }
            withExtendedLifetime(timeout) {}
        }

        /// A node whose file system does not respond until the gate opens.
        private struct Hanging: RunningNode {
            let gate: Gate

            func prepare() { gate.wait() }
        }

        @Test("A start gives up in time on a node whose file system does not respond, and names it")
        func hangingPreparation() async throws {
            let gate = Gate()
            let kind = NodeKind("hanging", .renderer, "Hangs", inputs: [Port("in", [.rawVideo])])
            let registry = NodeRegistry.builtIn.adding([
                NodeImplementation(
                    kind: kind, plan: { (request) throws(MediaError) in .sink(request) },
                    activate: { (instance) throws(MediaError) in Hanging(gate: gate) })
            ])
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 160, height: 120)
                    Node("hanging", name: "end")
                }
            }
            let pipeline = try await MediaPipeline(graph, registry: registry, limits: Limits(start: 0.2))
            let errors = Collected<MediaError?>()
            let start = Task { errors.append(await #expect(throws: MediaError.self) { try await pipeline.start() }) }
            await eventually("the start gives up") { errors.count == 1 }
            gate.open()
            await start.value
            #expect(errors.all.first??.code == MediaError.Code.pipelineStalled)
            let message = errors.all.first??.message ?? ""
            #expect(message.hasPrefix("\"end\" could not be opened within 0.2 s"), "\(message)")
        }

        @Test("A cancelled or released timeout does nothing, and releases its closure")
        func cancelled() async {
            let hasFired = AtomicBool()
            weak var held: Held?
            queue.suspend()
            let cancelled = {
                let new = Held()
                held = new
                let body: @Sendable (Timeout) -> Void = { _ in withExtendedLifetime(new) { hasFired.raise() } }
                _ = Timeout(at: .now(), on: queue, body)
                return Timeout(at: .now(), on: queue, body)
            }()
            cancelled.cancel()
            queue.resume()
            await eventually("nothing holds it") { held == nil }
            #expect(!hasFired.value)
            withExtendedLifetime(cancelled) {}
        }
    }
}
