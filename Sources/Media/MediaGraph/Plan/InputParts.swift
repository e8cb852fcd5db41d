/// The parts of a node that can add and remove inputs while it runs.
extension NodePlan {
    /// The plan of these inputs alone.
    public func part(of inputs: Set<String>) -> NodePlan {
        keeping(inputs) { element in inputs.contains { Self.element(element, belongsTo: $0) } }
    }

    /// The plan without these inputs.
    public func without(_ removed: Set<String>) -> NodePlan {
        keeping(Set(inputs.keys).subtracting(removed)) { element in
            !removed.contains { Self.element(element, belongsTo: $0) }
        }
    }

    /// The plan with the inputs of another part.
    public func adding(_ part: NodePlan) -> NodePlan {
        var plan = self
        plan.elements += part.elements
        plan.links += part.links
        plan.queues += part.queues
        plan.inputs.merge(part.inputs) { $1 }
        return plan
    }

    /// The inputs to add and remove when this plan replaces `running`; nil if the node has to be rebuilt.
    func inputChange(from running: NodePlan) -> (added: Set<String>, removed: Set<String>)? {
        guard inputsComeAndGo, running.inputsComeAndGo else { return nil }
        var running = running
        // Sentences do not count.
        (running.notes, running.passedOver) = (notes, passedOver)
        let added = Set(inputs.keys).subtracting(running.inputs.keys)
        let removed = Set(running.inputs.keys).subtracting(inputs.keys)
        let common = without(added)
        guard !common.inputs.isEmpty, common == running.without(removed) else { return nil }
        return (added, removed)
    }

    private static func element(_ name: String, belongsTo input: String) -> Bool { name.hasPrefix("\(input)-") }

    private func keeping(_ kept: Set<String>, where belongs: (String) -> Bool) -> NodePlan {
        var plan = self
        plan.elements = elements.filter { belongs($0.name) }
        plan.links = links.filter { belongs($0.from.element) }
        plan.queues = queues.filter { belongs($0.element) }
        plan.inputs = inputs.filter { kept.contains($0.key) }
        return plan
    }
}
