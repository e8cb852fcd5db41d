import MediaGraph
import MediaNodes
import Testing

extension MediaNodesTests {
    @Suite struct RefusedSettingTests {
        @Test("A setting that a node refuses stays as it was in the plan, and the others change")
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
            #expect(pipeline.plan.source.node("overlay")?.settings == ["text": "after"])
            #expect(try await pipeline.apply(graph(["text": "after"])).isEmpty)
            await pipeline.stop()
        }

        @Test("A plan takes back any bitrate, with the formats that state it")
        func keptBitrate() async throws {
            for bitrate in [nil, Bitrate.kilobitsPerSecond(800)] {
                let plan = try await MediaPipeline.plan(
                    MediaGraph {
                        Chain {
                            Node.testPattern("pattern", width: 320, height: 240)
                            Node.videoEncoder("encoder", bitrate: bitrate)
                            Node.null("end")
                        }
                    })
                let changed = plan.setting("encoder", "bitrate", to: 500_000)
                #expect(changed != plan)
                #expect(changed.keeping("bitrate", of: "encoder", asIn: plan) == plan)
            }
        }
    }
}
