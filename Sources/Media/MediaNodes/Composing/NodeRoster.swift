import GStreamerKit
import MediaGraph
import Synchronization

/// The handles of one pipeline, by the names of their nodes.
final class NodeRoster: Sendable {
    fileprivate struct State {
        var members: [String: NodeIdentity] = [:]
        /// How many edits that have not ended mention a node.
        var expected: [String: Int] = [:]
        /// Handles whose names an edit gives to others, by the number of the edit.
        var replaced: [Int: [String: NodeIdentity]] = [:]
        var edits = 0
    }

    /// A composition whose nodes have names and places in the pipeline.
    struct Enrolment: Sendable {
        let graph: MediaGraph
        let codes: [String: NodeCode]
        /// The names of all mentioned nodes.
        let names: [String]
        let owners: NodeOwners
        /// The names of those that had them before.
        var staying: Set<String> = []
        /// The number of the edit.
        var edit = 0
    }

    /// Those of all pipelines. Its lock is taken before that of a roster.
    private static let all = Mutex<[WeakBox<NodeRoster>]>([])

    let pipeline = WeakBox<MediaPipeline>()
    private let state = Mutex(State())

    private let hasEnded = AtomicBool()

    /// Whether the pipeline has stopped, so that its handles may join another one.
    var isOver: Bool { hasEnded.value }

    /// Releases the handles.
    func end() {
        hasEnded.raise()
        let gone = state.withLock { state in
            defer { (state.members, state.replaced) = ([:], [:]) }
            return (state.members, state.replaced)
        }
        withExtendedLifetime(gone) {}
    }

    /// Gives the nodes of a composition names and places, until `edited`.
    ///
    /// - Parameters:
    ///   - running: the running graph, with inserted nodes.
    ///   - isWhole: whether the composition replaces that graph, rather than adds to it.
    /// - Throws: `graph.invalid` for a name that is not free; `node.in-use` for a node of another pipeline.
    func enroll(
        _ composition: Composition, beside running: MediaGraph = MediaGraph(), isWhole: Bool = true
    ) throws(MediaError) -> Enrolment {
        let identities = composition.nodes.map(\.identity)
        let there = Set(running.nodes.map(\.name))
        return try enrolling(identities) { (state) throws(MediaError) in
            let names = try composition.names(
                inUse: there.union(state.members.keys), blocked: (isWhole ? [] : there).union(state.expected.keys),
                of: state.name(of:))
            try Self.checkValues(identities, beside: state.members.values)
            var enrolment = Enrolment(composition, names)
            enrolment.staying = Set(identities.compactMap(state.name(of:)))
            enrolment.edit = try seat(zip(identities, names).map { ($0, $1) }, &state)
            return enrolment
        }
    }

    /// Gives handles the places of a graph's nodes with their names. Their settings replace those of the graph.
    ///
    /// - Throws: `graph.invalid` for a handle without a name, or without a node of this name and of its kind.
    func enroll(_ nodes: [any MediaNode], in graph: MediaGraph) throws(MediaError) -> Enrolment {
        var graph = graph
        var members: [(NodeIdentity, String)] = []
        for handle in nodes.map(\.handle) {
            guard let name = handle.givenName ?? handle.identity.seat?.name else {
                throw Composition.invalid(
                    "A \(handle.identity.plainName) for a node of the graph has no name. Give it that of the node, with "
                        + "named(_:).")
            }
            guard let index = graph.nodes.firstIndex(where: { $0.name == name && $0.kind == handle.identity.kind })
            else {
                throw Composition.invalid("The graph has no \(handle.identity.plainName) named \"\(name)\".")
            }
            graph.nodes[index].settings.merge(handle.identity.settings) { $1 }
            graph.nodes[index].isOptional = graph.nodes[index].isOptional || handle.isOptional
            members.append((handle.identity, name))
        }
        let edit = try enrolling(members.map(\.0)) { (state) throws(MediaError) in
            for (identity, name) in members {
                guard let there = state.name(of: identity), there != name else { continue }
                throw Composition.invalid(
                    "The node \"\(there)\" runs already, so it cannot be named \"\(name)\" any more.")
            }
            try Self.checkValues(members.map(\.0), beside: state.members.values)
            return try seat(members, &state)
        }
        let codes = members.compactMap { identity, name in identity.code.map { (name, $0) } }
        return Enrolment(
            graph: graph, codes: Dictionary(codes) { first, _ in first }, names: members.map(\.1),
            owners: NodeOwners(handles: members), edit: edit)
    }

    /// Changes the state for nodes that come.
    ///
    /// - Throws: `node.in-use` if one of them is made of a value whose live settings it would share with a node of another
    ///   pipeline.
    private func enrolling<Made: Sendable>(
        _ coming: [NodeIdentity], _ body: (inout State) throws(MediaError) -> Made
    ) throws(MediaError) -> Made {
        let values = coming.filter { $0.value != nil }
        if values.isEmpty { return try state.withLock { (state) throws(MediaError) in try body(&state) } }
        return try Self.all.withLock { (all) throws(MediaError) in
            all.removeAll { $0.value?.isOver ?? true }
            for case let other? in all.map(\.value) where other !== self {
                let members = other.state.withLock { Array($0.members.values) }
                guard let node = values.first(where: { $0.sharesLiveSettings(with: members) }) else { continue }
                throw MediaError(
                    code: MediaError.Code.nodeInUse,
                    message:
                        "This \(node.plainName) would share its live settings with one of another pipeline. Stop that "
                        + "pipeline first, or make another \(node.plainName).")
            }
            if !all.contains(where: { $0.value === self }) { all.append(WeakBox(self)) }
            return try state.withLock { (state) throws(MediaError) in try body(&state) }
        }
    }

    /// Throws `graph.invalid` if two nodes are made of one value with live settings, which both would have in common.
    private static func checkValues(
        _ coming: [NodeIdentity], beside members: some Sequence<NodeIdentity>
    ) throws(MediaError) {
        for (place, node) in coming.enumerated() {
            guard node.sharesLiveSettings(with: Array(coming[..<place]) + members) else { continue }
            throw Composition.invalid(
                "Two nodes are made of one \(node.plainName), whose live settings they would share. Link one handle of "
                    + "it twice, or make another \(node.plainName).")
        }
    }

    /// Returns the number of the edit.
    private func seat(_ members: [(NodeIdentity, String)], _ state: inout State) throws(MediaError) -> Int {
        for (identity, name) in members {
            guard identity.sit(in: self, as: name) else {
                // Those that have a place since before this edit keep it.
                for (identity, name) in members where state.members[name] !== identity { identity.leave(self) }
                throw MediaError(
                    code: MediaError.Code.nodeInUse,
                    message:
                        "This \(identity.plainName) is part of another pipeline. Stop that one first, or make another "
                        + "\(identity.plainName).")
            }
        }
        state.edits += 1
        for (identity, name) in members {
            if let other = state.members[name], other !== identity {
                state.replaced[state.edits, default: [:]][name] = other
            }
            state.members[name] = identity
            state.expected[name, default: 0] += 1
        }
        return state.edits
    }

    /// Called when an edit has ended: nodes that the graph lacks lose their places. If the edit failed, handles whose names
    /// it gave to others get them back.
    func edited(_ enrolled: Enrolment?, now graph: MediaGraph, isDone: Bool = true) {
        leave { state in
            var leaving: [NodeIdentity] = []
            let replaced = enrolled.flatMap { state.replaced.removeValue(forKey: $0.edit) } ?? [:]
            for (name, former) in replaced {
                leaving += [isDone ? former : state.members[name]].compactMap(\.self)
                if !isDone { state.members[name] = former }
            }
            for name in enrolled?.names ?? [] {
                let count = (state.expected[name] ?? 1) - 1
                state.expected[name] = count > 0 ? count : nil
            }
            return leaving + state.takeOut(missingIn: graph)
        }
    }

    /// Called when the graph has changed: nodes that it lacks lose their places, unless an edit is about to add them.
    func settle(in graph: MediaGraph) {
        leave { $0.takeOut(missingIn: graph) }
    }

    /// Releases handles after the lock: the deinit of an object of the program may call a handle.
    private func leave(_ choose: (inout State) -> [NodeIdentity]) {
        let leaving = state.withLock { state in
            let leaving = choose(&state)
            for identity in leaving { identity.leave(self) }
            return leaving
        }
        withExtendedLifetime(leaving) {}
    }
}

extension NodeRoster.State {
    /// The name of a handle that has a place here.
    fileprivate func name(of identity: NodeIdentity) -> String? {
        identity.seat.flatMap { members[$0.name] === identity ? $0.name : nil }
    }

    /// Removes the members that neither the graph has nor an edit mentions.
    fileprivate mutating func takeOut(missingIn graph: MediaGraph) -> [NodeIdentity] {
        let names = members.keys.filter { graph.node($0) == nil && expected[$0] == nil }
        return names.compactMap { members.removeValue(forKey: $0) }
    }
}

extension NodeRoster.Enrolment {
    init(_ composition: Composition, _ names: [String]) {
        let codes = zip(names, composition.nodes).compactMap { name, node in node.identity.code.map { (name, $0) } }
        let identities = composition.nodes.map(\.identity)
        self.init(
            graph: composition.graph(with: names), codes: Dictionary(codes) { first, _ in first }, names: names,
            owners: NodeOwners(handles: zip(identities, names).map { ($0, $1) }))
    }
}

extension NodeIdentity {
    /// Whether another one of these nodes is made of the same value, and changes with this one.
    fileprivate func sharesLiveSettings(with others: [NodeIdentity]) -> Bool {
        guard let value else { return false }
        return others.contains { $0 !== self && $0.value?.sharesLiveSettings(with: value) == true }
    }
}

extension NodeOwners {
    fileprivate init(handles: [(NodeIdentity, String)]) {
        self.init(handles.map { ($1, ObjectIdentifier($0)) }) { first, _ in first }
    }
}

extension NodeBindings {
    /// The code that nodes bring along. Making it may block.
    ///
    /// - Throws: `node.name-taken` if a kind of the application has the name of another one; or the reason why a kind
    ///   cannot be made.
    init(_ codes: [String: NodeCode], _ registry: NodeRegistry) throws(MediaError) {
        self.init()
        for (name, code) in codes {
            switch code {
            case .rtpOutput(let function): rtpOutputs[name] = function
            case .frames(let function): frames[name] = function
            case .audio(let function): audio[name] = function
            case .frameFunction(let function): frameFunctions[name] = function
            case .retained: break
            case .kind(let implementation):
                if !registry.isListed(implementation.kind.name) { own[name] = implementation }
            case .own(let make):
                let implementation = try make()
                let kind = implementation.kind
                // Nodes with different objects may share a kind.
                let known = registry.kind(named: kind.name) ?? own.values.first { $0.kind.name == kind.name }?.kind
                if let known, !known.isTwin(of: kind) || registry.isListed(kind.name) {
                    throw CustomNode.nameTaken(kind.name)
                }
                own[name] = implementation
            }
        }
    }
}

extension NodeKind {
    /// Whether nodes of both kinds can be planned alike.
    fileprivate func isTwin(of other: NodeKind) -> Bool {
        inputs == other.inputs && outputs == other.outputs && settings.map(\.name) == other.settings.map(\.name)
    }
}
