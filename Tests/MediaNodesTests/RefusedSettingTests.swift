import MediaGraph
import MediaNodes
import Testing

extension MediaNodesTests {
    @Suite struct RefusedSettingTests {
        @Test("An edit with a setting that a node refuses changes nothing")
        func refusedSetting() async throws {
            func graph(_ settings: [String: SettingValue]) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        Node("overlay", name: "overlay", settings: settings)
                        Node.null("end")
                    }
                }
            }
            let pipeline = try await MediaPipeline(graph(["text": "before"]))
            try await pipeline.start()
            let plan = pipeline.plan
            // The overlay has no image.
            let single = await #expect(throws: MediaError.self) {
                try await pipeline.set("overlay", "image-opacity", to: 0.5)
            }
            #expect(single?.code == MediaError.Code.settingUnusable)
            #expect(pipeline.plan == plan)
            let several = await #expect(throws: MediaError.self) {
                try await pipeline.apply(graph(["image-opacity": 0.5, "text": "after"]))
            }
            #expect(several?.code == MediaError.Code.settingUnusable)
            #expect(pipeline.plan == plan)
            var wider = graph(["text": "after", "image-opacity": 0.5])
            wider.nodes.append(Node.testPattern("other", width: 64, height: 64))
            wider.nodes.append(Node.null("other-end"))
            wider.links.append(
                Link(
                    from: PortReference(node: "other", port: "video"), to: PortReference(node: "other-end", port: "in"))
            )
            await #expect(throws: MediaError.self) { try await pipeline.apply(wider) }
            #expect(pipeline.plan == plan)
            #expect(try await pipeline.apply(graph(["text": "before"])).isEmpty)
            #expect(!(try await pipeline.apply(graph(["text": "after"])).isEmpty))
            await pipeline.stop()
        }
    }
}
