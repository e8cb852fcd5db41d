import MediaGraph
import MediaNodes
import Testing

@testable import connectlive

@Suite struct ComparisonTests {
    @Test(arguments: [(true, 60), (false, 59)])
    func `the planned frames of a run that ends by itself include the last frame`(hasEnded: Bool, planned: Int) throws {
        let graph = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 64, height: 64, framesPerSecond: 30, frames: 60)
                Node.null("end")
            }
        }
        let plan = try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(graph)
        func sample(_ seconds: Double, _ frames: Int) -> PipelineStatistics {
            var end = NodeStatistics(node: "end", kind: "null")
            end.inputs["in"] = .init(frames: frames, bytes: 0)
            end.secondsCounted = seconds
            return PipelineStatistics(seconds: seconds, nodes: [end])
        }
        let comparison = Comparison(plan, from: sample(0, 0), to: sample(59 / 30, 60), hasEnded: hasEnded)
        #expect(comparison.outputs.first?.inputs.first?.expected == planned)
    }
}
