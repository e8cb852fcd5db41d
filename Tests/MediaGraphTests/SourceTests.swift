import Testing

@testable import MediaGraph

@Suite struct SourceTests {
    /// A node whose inputs reach its output, except those in `aside`. Without `isLinked`, its elements have no links.
    private func node(_ name: String, _ inputs: [String], aside: Set<String> = [], isLinked: Bool = true) -> NodePlan {
        var plan = NodePlan(Node("kind", name: name))
        plan.add("identity", as: "last")
        plan.outputs["out"] = ElementPad("last")
        for input in inputs {
            plan.add("identity", as: input)
            if isLinked, !aside.contains(input) { plan.link(input, "last") }
            plan.inputs[input] = ElementPad(input)
        }
        return plan
    }

    private func plan(_ nodes: [NodePlan], _ links: [(from: String, to: String, input: String)]) -> GraphPlan {
        GraphPlan(
            source: MediaGraph(nodes: [], links: []), nodes: nodes,
            links: links.map { link in
                LinkPlan(
                    link: Link(
                        from: PortReference(node: link.from, port: "out"),
                        to: PortReference(node: link.to, port: link.input)),
                    format: .rawVideo(), queue: nil)
            })
    }

    @Test func `the sources of an input are found behind processors, the nearest first, each once`() {
        let plan = self.plan(
            [
                node("camera", []), node("file", []), node("other", []), node("a", ["in"]), node("b", ["in"]),
                node("mixer", ["1", "2", "3"]), node("end", ["in", "more"]),
            ],
            [
                ("camera", "a", "in"), ("a", "mixer", "1"), ("a", "mixer", "3"), ("file", "mixer", "2"),
                ("mixer", "end", "in"), ("other", "b", "in"), ("b", "end", "more"),
            ])
        #expect(plan.sources(feeding: PortReference(node: "end", port: "in")) == ["file", "camera"])
        #expect(plan.sources(feeding: PortReference(node: "end", port: "more")) == ["other"])
        #expect(plan.sources(feeding: PortReference(node: "camera", port: "in")) == [])
    }

    @Test func `an input that does not reach the output has no part in it, and all have in a program`() {
        let nodes = [node("microphone", []), node("call", []), node("end", ["in"])]
        let links = [("microphone", "echo", "in"), ("call", "echo", "played"), ("echo", "end", "in")]
        let echo = self.plan(nodes + [node("echo", ["in", "played"], aside: ["played"])], links)
        #expect(echo.sources(feeding: PortReference(node: "end", port: "in")) == ["microphone"])
        let program = self.plan(nodes + [node("echo", ["in", "played"], isLinked: false)], links)
        #expect(program.sources(feeding: PortReference(node: "end", port: "in")) == ["microphone", "call"])
    }
}
