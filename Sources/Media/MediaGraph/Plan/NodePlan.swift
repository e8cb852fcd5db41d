/// What a node becomes: GStreamer elements as a value, what comes out of them, and what they may hold.
///
/// A plan is made before anything runs and is what is run: the runner makes exactly these elements.
public struct NodePlan: Sendable, Hashable, Codable {
    public var node: Node
    /// In the order in which they are made.
    public var elements: [ElementPlan] = []
    public var links: [ElementLink] = []
    /// Where media enters, by the name of the input.
    public var inputs: [String: ElementPad] = [:]
    /// Where media leaves, by the name of the output.
    public var outputs: [String: ElementPad] = [:]
    /// What leaves, by the name of the output.
    public var formats: [String: MediaFormat] = [:]
    public var queues: [QueuePlan] = []
    /// Seconds that a frame is expected to spend between entering (or being captured) and leaving or being rendered.
    public var latency = 0.0
    /// By the name of the output, the longest that a frame may take to it, in seconds: what renderers that play by the
    /// clock wait for. An output that is not named here gives frames on as they come.
    public var allowances: [String: Double] = [:]
    /// Whether media ends here by the clock: every frame is rendered as long after its capture as the slowest of what such
    /// renderers play together may take, so that it comes evenly and in step.
    public var playsByClock = false
    /// What was chosen and why, one sentence each.
    public var notes: [String] = []
    /// What could have been taken and was not, one sentence each.
    public var passedOver: [String] = []
    /// How often the samples of a frame are copied in our own code; 0 for nearly everything.
    public var copiesPerFrame = 0
    /// The node's settings that cannot be changed while it runs: another value means another node.
    public var fixedSettings: [String: SettingValue] = [:]
    /// What only one node can have at a time, such as a camera: who replaces this node gets it before it is built.
    public var resource: String?
    /// Whether inputs may come and go while the node runs. The elements of an input are then named `INPUT-…`, and are linked
    /// with one another only.
    public var inputsComeAndGo = false
    /// The output that the planner put this node behind, because somebody wants its media in another format.
    public var adapts: PortReference?

    public init(_ node: Node) {
        self.node = node
    }

    public var name: String { node.name }

    /// Adds an element; `name` is unique within the node.
    public mutating func add(_ factory: String, as name: String, _ properties: [String: SettingValue] = [:]) {
        precondition(!elements.contains { $0.name == name }, "\(node.name) has two elements named \(name)")
        elements.append(ElementPlan(name: name, factory: factory, properties: properties))
    }

    /// Adds a capsfilter.
    public mutating func addFilter(_ caps: String, as name: String) {
        add("capsfilter", as: name, ["caps": .text(caps)])
    }

    /// Adds a queue with a capacity and a rule.
    public mutating func addQueue(as name: String, _ queue: QueuePlan.Limits, holding format: MediaFormat?) {
        let plan = QueuePlan(element: name, limits: queue, bytesPerFrame: format?.bytesPerFrame)
        add("queue", as: name, plan.properties)
        queues.append(plan)
    }

    /// Links elements one after the other, by their names.
    public mutating func link(_ names: String...) {
        for (from, to) in zip(names, names.dropFirst()) {
            links.append(ElementLink(from: ElementPad(from), to: ElementPad(to)))
        }
    }

    public mutating func link(_ from: ElementPad, _ to: ElementPad) {
        links.append(ElementLink(from: from, to: to))
    }

    /// The plan of the same elements with the node's settings of now, of which only changeable ones may differ: what the
    /// elements are set to and the bitrate that comes out follow them.
    func following(_ node: Node) -> NodePlan {
        var plan = self
        plan.node = node
        for (setting, value) in node.settings
        where fixedSettings[setting] == nil && self.node.settings[setting] != value {
            for index in elements.indices where elements[index].properties[setting] != nil {
                plan.elements[index].properties[setting] = value
            }
            guard setting == "bitrate", let bitrate = value.integer else { continue }
            for (port, format) in formats where format.bitsPerSecond != nil {
                plan.formats[port]?.bitsPerSecond = bitrate
            }
        }
        return plan
    }

    public func element(_ name: String) -> ElementPlan? {
        elements.first { $0.name == name }
    }

    /// The inputs from which media can come to an output, inside the node.
    func inputs(reaching output: String) -> Set<String> {
        guard let pad = outputs[output] else { return [] }
        var found: Set<String> = []
        var frontier = [pad.element]
        while let element = frontier.popLast() {
            guard found.insert(element).inserted else { continue }
            frontier += links.filter { $0.to.element == element }.map(\.from.element)
        }
        return Set(inputs.filter { found.contains($0.value.element) }.keys)
    }
}

/// One element that will be made.
public struct ElementPlan: Sendable, Hashable, Codable {
    /// Unique within its node.
    public var name: String
    /// GStreamer's name of what makes it, such as `vp8enc`.
    public var factory: String
    public var properties: [String: SettingValue]

    public init(name: String, factory: String, properties: [String: SettingValue] = [:]) {
        self.name = name
        self.factory = factory
        self.properties = properties
    }
}

/// A pad of an element: `src` or `sink` when none is named; a name with `%u` is asked for.
public struct ElementPad: Sendable, Hashable, Codable {
    public var element: String
    public var pad: String?

    public init(_ element: String, _ pad: String? = nil) {
        self.element = element
        self.pad = pad
    }
}

public struct ElementLink: Sendable, Hashable, Codable {
    public var from: ElementPad
    public var to: ElementPad

    public init(from: ElementPad, to: ElementPad) {
        self.from = from
        self.to = to
    }
}

/// A queue between two threads: what it may hold, and what goes when more comes.
public struct QueuePlan: Sendable, Hashable, Codable {
    @frozen
    public enum Rule: String, Sendable, Hashable, Codable {
        /// The oldest goes.
        case dropOldest = "drops the oldest"
        /// Everything goes until the next keyframe, which is asked for.
        case dropToKeyframe = "drops to the next keyframe"
        /// Whoever brings more waits: only where that is a file, or where an edit may hold encoded media.
        case wait = "waits"
    }

    /// A limit that is nil does not hold.
    public struct Limits: Sendable, Hashable, Codable {
        public var frames: Int?
        public var bytes: Int?
        public var seconds: Double?
        public var rule: Rule

        public init(frames: Int? = nil, bytes: Int? = nil, seconds: Double? = nil, rule: Rule) {
            self.frames = frames
            self.bytes = bytes
            self.seconds = seconds
            self.rule = rule
        }

        /// Two raw pictures: one that is worked on next and one that comes meanwhile.
        public static let rawPictures = Limits(frames: 2, rule: .dropOldest)
        /// Raw sound of 200 ms.
        public static let rawSound = Limits(seconds: 0.2, rule: .dropOldest)
    }

    /// The name of the queue within its node.
    public var element: String
    public var limits: Limits
    /// Of raw pictures, where their size is known.
    public var bytesPerFrame: Int?

    public init(element: String, limits: Limits, bytesPerFrame: Int? = nil) {
        self.element = element
        self.limits = limits
        self.bytesPerFrame = bytesPerFrame
    }

    /// For a link whose media may not be dropped: upstream blocks while the queue is full.
    static let encodedBranch = QueuePlan(element: "branch", limits: Limits(bytes: 16_000_000, seconds: 12, rule: .wait))

    /// The most that it may hold, in bytes; nil where that cannot be known before.
    public var mostBytes: Int? {
        if let bytes = limits.bytes { return bytes }
        if let frames = limits.frames, let bytesPerFrame { return frames * bytesPerFrame }
        // Raw sound is 4 bytes a moment at 48 kHz.
        if let seconds = limits.seconds, limits.frames == nil, bytesPerFrame == nil { return Int(seconds * 192_000) }
        return nil
    }

    /// The properties of GStreamer's queue.
    public var properties: [String: SettingValue] {
        [
            "leaky": limits.rule == .dropOldest ? "downstream" : "no",
            "max-size-buffers": .integer(limits.frames ?? 0), "max-size-bytes": .integer(limits.bytes ?? 0),
            "max-size-time": .integer(limits.seconds.map { Int($0 * 1e9) } ?? 0), "silent": true,
        ]
    }
}

extension MediaFormat {
    /// The queue of a branch that may drop its media; nil for media of which every part is needed.
    var branchQueue: QueuePlan? {
        switch kind {
        case .rawVideo: QueuePlan(element: "branch", limits: .rawPictures, bytesPerFrame: bytesPerFrame)
        case .rawAudio: QueuePlan(element: "branch", limits: .rawSound)
        case .encodedVideo, .encodedAudio, .rtp, .data, .applicationFrames: nil
        }
    }
}
