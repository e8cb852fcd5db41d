import MediaGraph
import TestSupport
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    /// Nodes that show media outside of this process, and the absences of the cameras that feed them.
    @Suite struct AbsenceTests {
        /// Keeps the code of each change of an absence, after the name of the node.
        private final class Shown: PublishingNode {
            private let name: String
            private let seen: Collected<String>

            init(_ instance: NodeInstance, _ seen: Collected<String>) {
                name = instance.name
                self.seen = seen
            }

            func add(_ input: String, of instance: NodeInstance) {}
            func remove(_ input: String) {}
            func appear(_ done: @escaping @Sendable (MediaError?) -> Void) { done(nil) }

            func feedChanged(of input: String, _ feed: InputFeed) {
                let news = "\(name) \(feed.absence?.code ?? "live")"
                if seen.all.last(where: { $0.hasPrefix("\(name) ") }) != news { seen.append(news) }
            }

            static func registry(_ seen: Collected<String>) -> NodeRegistry {
                let kind = NodeKind("shown", .transport, "Appears", inputs: [Port("in", [.rawVideo])])
                return NodeRegistry.builtIn.adding([
                    NodeImplementation(
                        kind: kind, plan: { (request) throws(MediaError) in .sink(request) },
                        activate: { (instance) throws(MediaError) in Shown(instance, seen) })
                ])
            }
        }

        private func camera(_ faults: [CameraFile.Fault], in folder: TemporaryFolder) throws -> Node {
            Node.camera(
                device: try CameraFile.write(faults, to: folder), width: 64, height: 48, framesPerSecond: 30)
        }

        @Test func `a node gets the absence of the camera behind its processors, and its return`() async throws {
            let (folder, seen) = (TemporaryFolder(), Collected<String>())
            let camera = try self.camera([.init("unplugged", at: 3, until: 4)], in: folder)
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        camera
                        Node("mirror")
                        Node("shown")
                    }
                }, registry: Shown.registry(seen))
            try await pipeline.start()
            await eventually("the return") { seen.all.suffix(2) == ["shown camera.lost", "shown live"] }
            await pipeline.stop()
            #expect(seen.all == ["shown live", "shown camera.lost", "shown live"])
        }

        @Test func `an edit gives nodes the absence of the source that feeds them from then on`() async throws {
            let (folder, seen) = (TemporaryFolder(), Collected<String>())
            let camera = try self.camera([.init("unplugged", at: 3)], in: folder)
            func graph(shown source: String, other: String?) -> MediaGraph {
                MediaGraph {
                    Chain {
                        camera
                        Node.null("end")
                    }
                    Chain {
                        Node.testPattern("pattern", width: 64, height: 64)
                        Node.null("rest")
                    }
                    Chain(from: source) { Node("shown") }
                    if let other { Chain(from: other) { Node("shown", name: "other") } }
                }
            }
            let pipeline = try await MediaPipeline(
                graph(shown: "camera", other: nil), registry: Shown.registry(seen))
            try await pipeline.start()
            await eventually("the loss") { seen.all == ["shown live", "shown camera.lost"] }
            try await pipeline.apply(graph(shown: "pattern", other: nil), within: 8)
            await eventually("the pattern") { seen.all.last == "shown live" }
            try await pipeline.apply(graph(shown: "pattern", other: "camera"), within: 8)
            await eventually("the new node") { seen.all.last == "other camera.lost" }
            try await pipeline.apply(graph(shown: "camera", other: "pattern"), within: 8)
            await eventually("the exchange") { Set(seen.all.suffix(2)) == ["shown camera.lost", "other live"] }
            await pipeline.stop()
            #expect(seen.count == 6)
        }
    }
}
