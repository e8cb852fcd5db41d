import MediaGraph
import MediaNodes
import Testing

private struct AtOnce: Capturer {
    static let summary = "Ends before its first frame"

    func format() -> PictureFormat { PictureFormat(width: 320, height: 180, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {}
}

@Suite struct EndedAtOnceTests {
    @Test("A capturer that ends before its first frame fails the start immediately, alone and beside another chain")
    func ending() async throws {
        let alone = MediaGraph {
            Chain {
                AtOnce.node()
                Node.null("end")
            }
        }
        let beside = MediaGraph {
            Chain {
                AtOnce.node()
                Node.null("end")
            }
            Chain {
                Node.testPattern("pattern", width: 320, height: 240)
                Node.null("other")
            }
        }
        let registry = try NodeRegistry.builtIn.adding(.capturer(AtOnce.init))
        for graph in [alone, beside] {
            let pipeline = try await MediaPipeline(graph, registry: registry)
            let error = await #expect(throws: MediaError.self) { try await pipeline.start() }
            #expect(error?.code == "node.ended")
            let message = error?.message ?? ""
            #expect(message.hasPrefix("\"at-once\" ended without sending a frame"), "\(message)")
        }
    }
}
