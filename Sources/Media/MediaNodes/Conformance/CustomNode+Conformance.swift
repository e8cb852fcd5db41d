import MediaGraph
package import MediaTesting

extension Conformance {
    /// Runs the checks on a custom node. Nil if there are none for it: it is made of elements and a renderer.
    package static func test(
        _ node: CustomNode, _ options: Options = Options()
    ) async throws(MediaError) -> ConformanceReport? {
        switch node {
        case .capturer(_, let make):
            func open<Kind: Capturer>(_ first: Kind) async -> ConformanceReport {
                await test({ make() as? Kind ?? first }, nil, options)
            }
            return await open(make())
        case .processor(_, let make):
            func open<Kind: Processor>(_ first: Kind) async -> ConformanceReport {
                await test({ make() as? Kind ?? first }, nil, options)
            }
            return await open(make())
        case .renderer(_, let make):
            func open<Kind: Renderer>(_ first: Kind) async -> ConformanceReport {
                await test({ make() as? Kind ?? first }, nil, options)
            }
            return await open(make())
        case .elements(let elements):
            guard let output = node.kind.outputs.first?.name else { return nil }
            let registry = try NodeRegistry.builtIn.adding(node)
            return await test(
                try PipelineStand(elements.name, output: output, registry: registry), Rehearsal(), options)
        }
    }
}

extension Conformance.Group {
    /// The group of a node made of elements. Nil for a renderer, whose progress a pipeline does not show.
    package init?(of elements: ElementsNode) {
        switch elements.group {
        case .capturer: self = .capturer
        case .processor: self = .processor
        default: return nil
        }
    }
}
