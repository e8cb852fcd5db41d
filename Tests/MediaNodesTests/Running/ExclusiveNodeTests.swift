import Glibc
import MediaGraph
import Synchronization
import Testing
import TestSupport

@testable import MediaNodes

/// A capturer that only one node can use at a time, like a camera.
private final class LensNode: NodeType, RunningNode {
    static let kind = NodeKind(
        "lens", .capturer, "A pattern that only one node can have", outputs: [Port("video", [.rawVideo])],
        settings: [
            SettingContract("width", .integer(16...4096), default: 320, ""),
            SettingContract("works", .flag, default: true, ""),
            SettingContract("opening", .number(0...10), default: 0, unit: "seconds", ""),
        ])
    private static let isTaken = Mutex(false)
    /// The widths of all that were made.
    static let widths = Collected<Int>()
    private let opening: Double

    private init(opening: Double) { self.opening = opening }

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.resource = "the lens"
        // A file descriptor without a writer stands for a camera that delivers nothing.
        plan.add("videotestsrc", as: "source", ["is-live": true])
        let format = MediaFormat.rawVideo(width: request.integer("width"), height: 240, framesPerSecond: 60)
        plan.addFilter(RawFormat.video(format), as: "format")
        plan.add("identity", as: "gate", request.flag("works") ? [:] : ["drop-probability": 1.0])
        plan.link("source", "format", "gate")
        plan.outputs["video"] = ElementPad("gate")
        plan.formats["video"] = format
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        if wasTaken { throw MediaError(code: MediaError.Code.cameraBusy, message: "The lens is in use.") }
        widths.append(instance.integer("width"))
        return LensNode(opening: instance.number("opening"))
    }

    func prepare() { usleep(UInt32(opening * 1e6)) }

    func finish() { Self.isTaken.withLock { $0 = false } }
}

extension MediaNodesTests {
    @Suite struct ExclusiveNodeTests {
        private func graph(_ settings: [String: SettingValue]) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node("lens", settings: settings)
                    Node.frames("view")
                }
            }
        }

        @Test("An exclusive device passes to the replacing node, and back if that fails")
        func handOver() async throws {
            let widths = Collected<Int>()
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.frames["view"] = { widths.append($0.width) }
            bindings.events = { events.append($0) }
            let pipeline = try await MediaPipeline(
                graph([:]), bindings: bindings, registry: .builtIn.adding([LensNode.self]))
            try await pipeline.start()
            await eventually("frames") { widths.count > 5 }
            try await pipeline.apply(graph(["width": 640]))
            await eventually("frames of the new size") { widths.all.last == 640 }
            let error = await #expect(throws: MediaError.self) {
                try await pipeline.apply(graph(["width": 800, "works": false]), within: 0.3)
            }
            #expect(error?.code == MediaError.Code.editFailed)
            let seen = widths.count
            await eventually("frames as before") { widths.count > seen + 5 }
            #expect(widths.all.last == 640)
            await pipeline.stop()
            #expect(!events.all.contains { if case .failed = $0 { true } else { false } })
        }

        @Test(
            "A failed edit reports its own reason, however long its device takes to open again",
            arguments: [5, 0.1])
        func slowReturn(restoreLimit: Double) async throws {
            let seen = Seen()
            let graph = graph(["opening": 0.8])
            let pipeline = try await MediaPipeline(
                graph, bindings: seen.bindings(of: graph), registry: .builtIn.adding([LensNode.self]),
                limits: Limits(undo: 0.1, restore: restoreLimit))
            try await pipeline.start()
            let error = await #expect(throws: MediaError.self) {
                try await pipeline.apply(self.graph(["width": 800, "works": false]), within: 0.2)
            }
            #expect(error?.message.contains("delivered nothing in time") == true, "\(error as Any)")
            if restoreLimit > 1 {
                #expect(LensNode.widths.all.suffix(2) == [800, 320])
                let count = seen.pictures.count
                await eventually("frames as before") { seen.pictures.count > count + 5 }
                #expect(seen.failures.isEmpty)
            }
            await pipeline.stop()
        }

        @Test("A stop during a replacement does not open the device for the old node again")
        func stopDuringHandOver() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                graph([:]), bindings: seen.bindings(of: graph([:])),
                registry: .builtIn.adding([LensNode.self]))
            try await pipeline.start()
            let edit = Task { try await pipeline.apply(graph(["width": 800, "works": false]), within: 20) }
            await eventually("the new node has the device") { LensNode.widths.all.last == 800 }
            await pipeline.stop()
            let error = await #expect(throws: MediaError.self) { try await edit.value }
            #expect(error?.code == MediaError.Code.pipelineStopped)
            #expect(LensNode.widths.all.last == 800)
            #expect(seen.failures.isEmpty)
        }
    }
}
