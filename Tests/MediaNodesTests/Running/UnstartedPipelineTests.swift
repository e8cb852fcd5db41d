import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Pipelines that never run.
    @Suite struct UnstartedPipelineTests {
        private final class Reference: @unchecked Sendable {
            private weak var node: AnyObject?

            init(_ node: (any RunningNode)?) { self.node = node as AnyObject }

            var isReleased: Bool { node == nil }
        }

        private static let size: [String: SettingValue] = ["width": 64, "height": 64, "fps": 10]

        private static func graph(_ kind: String, in folder: TemporaryFolder) -> MediaGraph {
            var settings = size
            if kind == "feed" {
                settings["socket"] = .text(folder.file("feed.sock"))
            } else {
                settings["command"] = "sleep 100"
            }
            return MediaGraph {
                Chain {
                    Node(kind, name: "source", settings: settings)
                    Node.null("end")
                }
            }
        }

        /// The running node of a pipeline that is released when this returns.
        private static func node(
            of kind: String, in folder: TemporaryFolder, stopping: Bool
        ) async throws -> Reference {
            let pipeline = try await MediaPipeline(graph(kind, in: folder))
            let node = Reference(pipeline.graph.node("source")?.running)
            #expect(!node.isReleased)
            if stopping { await pipeline.stop() }
            return node
        }

        @Test(arguments: ["exec", "process", "feed"], [false, true])
        func `a prepared pipeline is released with its nodes`(_ kind: String, stopping: Bool) async throws {
            let folder = TemporaryFolder()
            let node = try await Self.node(of: kind, in: folder, stopping: stopping)
            await eventually("the end of the node") { node.isReleased }
        }
    }
}
