/// The steps that turn a running graph into another: nodes to remove and add, links to move, settings to change.
///
/// A node stays if it differs only in settings that can change while it runs, or in inputs that it can add and remove.
/// Every other difference replaces the node.
public struct GraphChange: Sendable, Hashable {
    /// A changed setting of a node that stays.
    public struct SettingChange: Sendable, Hashable {
        /// The name of the node.
        public var node: String
        /// The name of the setting.
        public var setting: String
        /// Nil restores the kind's default.
        public var value: SettingValue?

        package init(node: String, setting: String, value: SettingValue?) {
            (self.node, self.setting, self.value) = (node, setting, value)
        }
    }

    /// Names of removed nodes, including replaced ones.
    public var removed: [String]
    /// New nodes, including replacements, each after the nodes that feed it.
    public var added: [NodePlan]
    /// Inputs that are added to nodes that stay: for each such node, the new part of its plan.
    public var addedInputs: [NodePlan] = []
    /// Inputs that are removed from nodes that stay.
    public var removedInputs: [PortReference] = []
    /// Links that the change takes away.
    public var removedLinks: [Link]
    /// Links that the change adds.
    public var addedLinks: [LinkPlan] = []
    /// Settings that change on nodes that stay.
    public var settings: [SettingChange]
    /// The plan after the change.
    public var result: GraphPlan

    /// The difference of two plans.
    public init(from old: GraphPlan, to new: GraphPlan) {
        var staying: Set<String> = []
        for after in new.nodes {
            guard var before = old.node(after.name)?.following(after.node) else { continue }
            // A graph may name a node that the planner inserted, as `graph --live` writes it.
            before.adapts = after.adapts
            if before == after {
                staying.insert(after.name)
            } else if let change = after.inputChange(from: before) {
                staying.insert(after.name)
                if !change.added.isEmpty { addedInputs.append(after.part(of: change.added)) }
                removedInputs += change.removed.sorted().map { PortReference(node: after.name, port: $0) }
            }
        }
        removed = old.nodes.map(\.name).filter { !staying.contains($0) }
        added = new.nodes.filter { !staying.contains($0.name) }
        func stays(_ link: Link) -> Bool {
            staying.contains(link.from.node) && staying.contains(link.to.node)
                && old.links.contains { $0.link == link } && new.links.contains { $0.link == link }
        }
        removedLinks = old.links.map(\.link).filter { !stays($0) }
        settings = staying.sorted().flatMap { name -> [SettingChange] in
            let before = old.node(name)?.node.settings ?? [:]
            let after = new.node(name)?.node.settings ?? [:]
            return Set(before.keys).union(after.keys).sorted().filter { before[$0] != after[$0] }.map {
                SettingChange(node: name, setting: $0, value: after[$0])
            }
        }
        result = new
        // Links that stay keep their queue.
        for index in result.links.indices where stays(result.links[index].link) {
            result.links[index].queue = old.links.first { $0.link == result.links[index].link }?.queue
        }
        let coming = Set(
            addedInputs.flatMap { part in part.inputs.keys.map { PortReference(node: part.name, port: $0) } })
        addLinks(where: { !stays($0) }, takingOver: { staying.contains($0.to.node) && !coming.contains($0.to) })
    }

    /// Rebuilds nodes of a running plan with unchanged settings.
    public init(renewing names: Set<String>, in plan: GraphPlan) {
        func touches(_ link: Link) -> Bool { names.contains(link.from.node) || names.contains(link.to.node) }
        removed = plan.nodes.map(\.name).filter(names.contains)
        added = plan.nodes.filter { names.contains($0.name) }
        removedLinks = plan.links.map(\.link).filter(touches)
        settings = []
        result = plan
        addLinks(where: touches, takingOver: { !names.contains($0.to.node) })
    }

    /// Collects the new links. A new link to an input that stays gets a queue: an edit holds the new media there until
    /// it cuts the old link, and the source's other branches continue.
    private mutating func addLinks(where isNew: (Link) -> Bool, takingOver: (Link) -> Bool) {
        for index in result.links.indices where isNew(result.links[index].link) {
            let link = result.links[index]
            if link.queue == nil, takingOver(link.link) {
                let isAlone = result.links.count { $0.link.from == link.link.from } == 1
                let raw = link.format.branchQueue
                // Raw media that feeds nothing else may wait; a queue would drop it.
                result.links[index].queue = raw == nil ? .encodedBranch : isAlone ? nil : raw
            }
            addedLinks.append(result.links[index])
        }
    }

    /// Whether both plans are the same.
    public var isEmpty: Bool {
        removed.isEmpty && added.isEmpty && addedInputs.isEmpty && removedInputs.isEmpty && removedLinks.isEmpty
            && addedLinks.isEmpty && settings.isEmpty
    }
}

extension GraphChange: CustomStringConvertible {
    /// Such as `adds recorder; removes window; sets encoder.bitrate`.
    public var description: String {
        if isEmpty { return "changes nothing" }
        let replaced = Set(removed).intersection(added.map(\.name))
        let coming = added.map(\.name).filter { !replaced.contains($0) }
        let going = removed.filter { !replaced.contains($0) }
        var parts: [String] = []
        if !coming.isEmpty { parts.append("adds \(coming.joined(separator: ", "))") }
        if !replaced.isEmpty { parts.append("replaces \(replaced.sorted().joined(separator: ", "))") }
        if !going.isEmpty { parts.append("removes \(going.joined(separator: ", "))") }
        if !settings.isEmpty {
            parts.append("sets \(settings.map { "\($0.node).\($0.setting)" }.joined(separator: ", "))")
        }
        if parts.isEmpty { parts.append("changes links") }
        return parts.joined(separator: "; ")
    }
}
