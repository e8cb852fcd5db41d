import Dispatch
import Foundation
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct OffPoolTests {
        /// Nodes whose device responds only after another task of the process has finished.
        private static func registry(_ asked: Collected<String>, _ answer: DispatchSemaphore) -> NodeRegistry {
            let kind = NodeKind("slow", .capturer, "", outputs: [Port("video", [.rawVideo])])
            return NodeRegistry.builtIn.adding([
                NodeImplementation(
                    kind: kind,
                    plan: { (request) throws(MediaError) in
                        asked.append(request.name)
                        let hasAnswered = answer.wait(timeout: .now() + 5) == .success
                        throw MediaError(code: hasAnswered ? "test.answered" : "test.starved", message: "It is slow.")
                    },
                    activate: { (_) throws(MediaError) in nil })
            ])
        }

        @Test("Planning and creating pipelines does not block Swift's pool, however slow devices are")
        func freePool() async {
            let count = ProcessInfo.processInfo.activeProcessorCount + 1
            let asked = Collected<String>()
            let answer = DispatchSemaphore(value: 0)
            let registry = Self.registry(asked, answer)
            let graph = chain(Node("slow"), .null("end"))
            let codes = await withTaskGroup(of: String.self) { group in
                for number in 0..<count {
                    group.addTask {
                        do {
                            if number == 0 {
                                _ = try await MediaPipeline.plan(graph, registry: registry)
                            } else {
                                _ = try await MediaPipeline(graph, registry: registry)
                            }
                            return "nothing"
                        } catch {
                            return (error as? MediaError)?.code ?? "\(error)"
                        }
                    }
                }
                group.addTask {
                    await eventually("all devices are asked") { asked.count == count }
                    for _ in 0..<count { answer.signal() }
                    return "test.answered"
                }
                return await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(codes == ["test.answered"])
        }
    }
}
