import Dispatch
import GStreamerKit
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct AppearanceTests {
        /// A node that others see from the moment when it appears.
        private final class Shown: PublishingNode {
            let name: String
            private let appearances: Collected<String>
            private let permission: Gate?

            init(_ instance: NodeInstance, _ appearances: Collected<String>, _ permission: Gate?) {
                name = instance.name
                self.appearances = appearances
                self.permission = permission
            }

            func add(_ input: String, of instance: NodeInstance) {}
            func remove(_ input: String) {}

            func appear(_ done: @escaping @Sendable (MediaError?) -> Void) {
                appearances.append(name)
                guard let permission else { return done(nil) }
                DispatchQueue.global().async {
                    permission.wait()
                    done(nil)
                }
            }

            /// A built-in registry with this node, which others see once they have the permission.
            static func registry(_ appearances: Collected<String>, permission: Gate? = nil) -> NodeRegistry {
                let kind = NodeKind("shown", .transport, "Appears", inputs: [Port("in", [.rawVideo])])
                return NodeRegistry.builtIn.adding([
                    NodeImplementation(
                        kind: kind, plan: { (request) throws(MediaError) in .sink(request) },
                        activate: { (instance) throws(MediaError) in Shown(instance, appearances, permission) })
                ])
            }
        }

        @Test func `a node does not appear in an edit with a refused setting`() async throws {
            let appearances = Collected<String>()
            func graph(_ settings: [String: SettingValue], isShown: Bool) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node("overlay", name: "overlay", settings: settings)
                        Node.null("rest")
                    }
                    if isShown { Chain(from: "pattern", port: "video") { Node("shown", name: "shown") } }
                }
            }
            let pipeline = try await MediaPipeline(
                graph(["text": "on"], isShown: false), registry: Shown.registry(appearances))
            try await pipeline.start()
            // The overlay has no image.
            let error = await #expect(throws: MediaError.self) {
                try await pipeline.apply(graph(["text": "on", "image-opacity": 0.5], isShown: true), within: 10)
            }
            #expect(error?.code == MediaError.Code.settingUnusable)
            #expect(appearances.all.isEmpty)
            try await pipeline.apply(graph(["text": "on"], isShown: true), within: 10)
            #expect(appearances.all == ["shown"])
            await pipeline.stop()
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

        @Test("Raw frames of a new source are current, however long another new node takes to appear")
        func currentFrames() async throws {
            let (appearances, frames, permission) = (Collected<String>(), Collected<(Int, MediaTime)>(), Gate())
            var bindings = NodeBindings()
            bindings.frames["view"] = { frames.append(($0.width, $0.captureTime)) }
            func graph(width: Int, isShown: Bool) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("source", width: width, height: 120, framesPerSecond: 30)
                        Node.frames("view")
                    }
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.null("rest")
                    }
                    if isShown { Chain(from: "pattern", port: "video") { Node("shown", name: "shown") } }
                }
            }
            let pipeline = try await MediaPipeline(
                graph(width: 160, isShown: false), bindings: bindings,
                registry: Shown.registry(appearances, permission: permission))
            try await pipeline.start()
            async let change = pipeline.apply(graph(width: 320, isShown: true), within: 60)
            await eventually("the node begins to appear") { appearances.count == 1 }
            let before = frames.count
            await eventually("the old source goes on meanwhile") { frames.count > before + 60 }
            permission.open()
            _ = try await change
            await eventually("frames of the new source") { frames.all.last?.0 == 320 }
            let first = try #require(frames.all.first { $0.0 == 320 })
            // One or two, if the old source delivers while links move.
            let overlap = frames.all.count { $0.0 == 160 && $0.1 > first.1 }
            #expect(overlap < 30, "\(overlap) frames of the old source are newer than the first of the new one")
            await pipeline.stop()
        }

        @Test(
            "An edit that waits for a keyframe ends immediately if one of its new nodes fails, with that node's error")
        func failureBeforeKeyframe() async throws {
            let pictures = try await EncodedPictures.make("vp8", count: 2)
            try #require(pictures.count == 2)
            let packets = Collected<Bool>()
            var bindings = NodeBindings()
            for name in ["first", "two"] { bindings.rtpOutputs[name] = { _ in } }
            bindings.rtpOutputs["one"] = { packets.append($0.isKeyframe) }
            func graph(_ source: String, isBroken: Bool) -> MediaGraph {
                MediaGraph {
                    for name in ["a", "b"] { Node.bypass(name, width: 320, height: 240, codec: .vp8) }
                    Chain(from: "a") { Node.rtpOutput("first") }
                    Chain(from: "b") { Node.rtpOutput("two") }
                    Chain(from: source) { Node.rtpOutput("one") }
                    if isBroken {
                        Chain {
                            Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 30)
                            Node("element:identity", name: "broken", settings: ["error-after": 30])
                            Node.null("rest")
                        }
                    }
                }
            }
            let pipeline = try await MediaPipeline(graph("a", isBroken: false), bindings: bindings)
            try await pipeline.start()
            func push(_ picture: Int, into node: String) {
                _ = pipeline.frameInput(node)?.push(encoded: pictures[picture], at: .now)
            }
            for node in ["a", "b"] { push(0, into: node) }
            await eventually("the first frame") { packets.count == 1 }
            let isDone = AtomicBool()
            async let failure = {
                defer { isDone.raise() }
                return await #expect(throws: MediaError.self) {
                    try await pipeline.apply(graph("b", isBroken: true), within: 8)
                }
            }()
            await eventually(within: 30, "the edit ends") {
                push(1, into: "b")
                return isDone.value
            }
            let error = await failure
            #expect(error?.node == "broken", "\(error?.message ?? "")")
            #expect(pipeline.state == .running)
            await pipeline.stop()
        }
    }
}
