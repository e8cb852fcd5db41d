import MediaGraph
import MediaNodes
import Testing
import TestSupport

/// A capturer that takes a level, and refuses its other setting.
private final class DialNode: NodeType, RunningNode {
    static let kind = NodeKind(
        "dial", .capturer, "A pattern with a level", outputs: [Port("video", [.rawVideo])],
        settings: [
            SettingContract("level", .integer(0...9), default: 0, isChangeable: true, ""),
            SettingContract("refused", .flag, default: false, isChangeable: true, ""),
        ])
    static let levels = Collected<Int>()

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add("videotestsrc", as: "source", ["is-live": true])
        let format = MediaFormat.rawVideo(width: 64, height: 64, framesPerSecond: 30)
        plan.addFilter(RawFormat.video(format), as: "format")
        plan.link("source", "format")
        plan.outputs["video"] = ElementPad("format")
        plan.formats["video"] = format
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { DialNode() }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard setting == "level" else {
            throw MediaError(code: MediaError.Code.settingUnusable, message: "The dial refuses it.")
        }
        Self.levels.append(value.integer ?? -1)
        return true
    }
}

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

        @Test(arguments: [
            ("overlay", "image-opacity", SettingValue.number(0.5)), ("filter", "caps", "not caps"),
            ("tint", "format", "not caps"),
        ])
        func `a check refuses a value that the node would refuse, and changes nothing`(
            node: String, setting: String, value: SettingValue
        ) async throws {
            let tint = ElementsNode(
                "tint", "Passes frames on", elements: ["capsfilter"], exposing: ["format": "capsfilter.caps"],
                takes: .rawVideo(), gives: .rawVideo())
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Node("overlay", name: "overlay")
                    Node("element:capsfilter", name: "filter")
                    Node("tint", name: "tint")
                    Node.null("end")
                }
            }
            let pipeline = try await MediaPipeline(graph, registry: try .builtIn.adding(.elements(tint)))
            try await pipeline.start()
            let plan = pipeline.plan
            let checked = #expect(throws: MediaError.self) { try pipeline.check(node, setting, to: value) }
            let refused = await #expect(throws: MediaError.self) { try await pipeline.set(node, setting, to: value) }
            #expect(checked?.description == refused?.description)
            #expect(pipeline.plan == plan)
            try pipeline.check("filter", "caps", to: "video/x-raw")
            #expect(pipeline.plan == plan)
            await pipeline.stop()
        }

        @Test func `the settings that an edit has changed before a refused one are set back`() async throws {
            func graph(_ settings: [String: SettingValue]) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node("dial", name: "dial", settings: settings)
                        Node.null("end")
                    }
                }
            }
            let pipeline = try await MediaPipeline(graph(["level": 3]), registry: .builtIn.adding([DialNode.self]))
            try await pipeline.start()
            await #expect(throws: MediaError.self) {
                try await pipeline.apply(graph(["level": 5, "refused": true]))
            }
            #expect(DialNode.levels.all == [5, 3])
            await pipeline.stop()
        }
    }
}
