import GStreamerKit
import MediaGraph
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct AppearanceTests {
        /// A node that others would see from the moment on at which it appears.
        private final class Shown: PublishingNode {
            let name: String
            private let appearances: Collected<String>

            init(_ instance: NodeInstance, _ appearances: Collected<String>) {
                name = instance.name
                self.appearances = appearances
            }

            func add(_ input: String, of instance: NodeInstance) {}
            func remove(_ input: String) {}

            func appear(_ done: @escaping @Sendable (MediaError?) -> Void) {
                appearances.append(name)
                done(nil)
            }

            static func registry(_ appearances: Collected<String>) -> NodeRegistry {
                let kind = NodeKind("shown", .transport, "Appears", inputs: [Port("in", [.rawVideo])])
                return NodeRegistry.builtIn.adding([
                    NodeImplementation(
                        kind: kind, plan: { (request) throws(MediaError) in .sink(request) },
                        activate: { (instance) throws(MediaError) in Shown(instance, appearances) })
                ])
            }
        }

        @Test("A node appears to others only after every source that the edit replaces has its keyframe")
        func appearsLast() async throws {
            let pictures = try await EncodedPictures.make("vp8", count: 2)
            try #require(pictures.count == 2)
            let (appearances, packets) = (Collected<String>(), Collected<Bool>())
            var bindings = NodeBindings()
            for name in ["first", "two"] { bindings.rtpOutputs[name] = { _ in } }
            bindings.rtpOutputs["one"] = { packets.append($0.isKeyframe) }
            func graph(_ source: String, isShown: Bool) -> MediaGraph {
                MediaGraph {
                    for name in ["a", "b"] { Node.bypass(name, width: 320, height: 240, codec: .vp8) }
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.null("rest")
                    }
                    Chain(from: "a") { Node.rtpOutput("first") }
                    Chain(from: "b") { Node.rtpOutput("two") }
                    Chain(from: source) { Node.rtpOutput("one") }
                    if isShown { Chain(from: "pattern", port: "video") { Node("shown", name: "shown") } }
                }
            }
            let pipeline = try await MediaPipeline(
                graph("a", isShown: false), bindings: bindings, registry: Shown.registry(appearances))
            try await pipeline.start()
            func push(_ picture: Int, into node: String) {
                _ = pipeline.frameInput(node)?.push(encoded: pictures[picture], at: .now)
            }
            for node in ["a", "b"] { push(0, into: node) }
            await eventually("the first frame") { packets.count == 1 }
            func apply(pushing picture: Int) async throws {
                let isDone = AtomicBool()
                async let change = {
                    defer { isDone.raise() }
                    return try await pipeline.apply(graph("b", isShown: true), within: 0.5)
                }()
                await eventually("the edit ends") {
                    push(picture, into: "b")
                    return isDone.value
                }
                _ = try await change
            }
            let error = await #expect(throws: MediaError.self) { try await apply(pushing: 1) }
            #expect(error?.code == MediaError.Code.editFailed)
            #expect(appearances.count == 0)
            try await apply(pushing: 0)
            #expect(appearances.all == ["shown"])
            await pipeline.stop()
        }
    }
}
