/// The plan of a node: its GStreamer elements, the formats of its outputs, and the capacity of its queues.
///
/// The runner creates exactly these elements.
public struct NodePlan: Sendable, Hashable, Codable {
    /// The planned node.
    public var node: Node
    /// In the order of creation.
    public var elements: [ElementPlan] = []
    /// The links between its elements.
    public var links: [ElementLink] = []
    /// The pads at which media enters, by input.
    public var inputs: [String: ElementPad] = [:]
    /// The pads at which media leaves, by output.
    public var outputs: [String: ElementPad] = [:]
    /// The formats of the outputs.
    public var formats: [String: MediaFormat] = [:]
    /// Its queues, with their capacity.
    public var queues: [QueuePlan] = []
    /// The expected seconds of a frame in this node, from entering (or capture) to leaving or being rendered.
    public var latency = 0.0
    /// The longest allowed time of a frame to each output, in seconds. Renderers that play by the clock wait that long.
    /// An output that is not listed passes frames on immediately.
    public var allowances: [String: Double] = [:]
    /// Whether the node renders by the clock. All such renderers delay each frame by the longest allowed time of any
    /// path to one of them, so that they play evenly and in sync.
    public var playsByClock = false
    /// The choices made and their reasons, one sentence each.
    public var notes: [String] = []
    /// The rejected alternatives, one sentence each.
    public var passedOver: [String] = []
    /// How often our own code copies the samples of a frame; 0 for most nodes.
    public var copiesPerFrame = 0
    /// The settings that cannot change while the node runs. Another value replaces the node.
    public var fixedSettings: [String: SettingValue] = [:]
    /// The values of changeable settings that a graph need not set, as far as the plan depends on them.
    public var defaults: [String: SettingValue] = [:]
    /// A resource that only one node can hold, such as a camera. A replacement gets it from the old node before it is
    /// built.
    public var resource: String?
    /// The device of a source that is bound while the graph runs. The node's own elements then give its promise, whether
    /// the device is there or not.
    public var device: DevicePlan?
    /// Whether inputs can be added and removed while the node runs. The elements of an input are then named `INPUT-…`
    /// and are linked only with one another.
    public var inputsComeAndGo = false
    /// The output whose format an inserted node converts; nil for nodes of the graph.
    public var adapts: PortReference?

    /// A plan without elements, to which a kind adds its own.
    public init(_ node: Node) {
        self.node = node
    }

    /// The name of the node.
    public var name: String { node.name }

    /// Adds an element. Traps if the node has another one named `name`.
    public mutating func add(_ factory: String, as name: String, _ properties: [String: SettingValue] = [:]) {
        precondition(!elements.contains { $0.name == name }, "\(node.name) has two elements named \(name)")
        elements.append(ElementPlan(name: name, factory: factory, properties: properties))
    }

    /// Adds an element, and links the one that was added last to it.
    public mutating func append(_ factory: String, as name: String, _ properties: [String: SettingValue] = [:]) {
        let last = elements.last
        add(factory, as: name, properties)
        if let last { link(last.name, name) }
    }

    /// Appends a capsfilter.
    public mutating func appendFilter(_ caps: String, as name: String) {
        append("capsfilter", as: name, ["caps": .text(caps)])
    }

    /// Notes a choice, its reason and the rejected alternatives.
    public mutating func note(_ choice: FormatChoice) {
        if let reason = choice.reason { notes.append(reason) }
        passedOver += choice.passedOver
    }

    /// Makes the element that was added last an output of the node.
    public mutating func setOutput(_ port: String, _ format: MediaFormat) {
        outputs[port] = elements.last.map { ElementPad($0.name) }
        formats[port] = format
    }

    /// Adds a capsfilter.
    public mutating func addFilter(_ caps: String, as name: String) {
        add("capsfilter", as: name, ["caps": .text(caps)])
    }

    /// Adds a queue with the given capacity and overflow rule.
    public mutating func addQueue(as name: String, _ queue: QueuePlan.Limits, holding format: MediaFormat?) {
        let plan = QueuePlan(element: name, limits: queue, bytesPerFrame: format?.bytesPerFrame)
        add("queue", as: name, plan.properties)
        queues.append(plan)
    }

    /// Links elements one after the other.
    public mutating func link(_ names: String...) {
        for (from, to) in zip(names, names.dropFirst()) {
            links.append(ElementLink(from: ElementPad(from), to: ElementPad(to)))
        }
    }

    /// Links two pads.
    public mutating func link(_ from: ElementPad, _ to: ElementPad) {
        links.append(ElementLink(from: from, to: to))
    }

    /// Notes the contract's defaults of the changeable settings that the elements have.
    mutating func keepDefaults(of kind: NodeKind) {
        for setting in kind.settings where setting.isChangeable && defaults[setting.name] == nil {
            guard elements.contains(where: { $0.properties[setting.name] != nil }) else { continue }
            defaults[setting.name] = setting.defaultValue
        }
    }

    /// The plan for `node`, which may differ from this plan's node only in changeable settings. Element properties and
    /// the output's bitrate follow the settings.
    func following(_ node: Node) -> NodePlan {
        var plan = self
        plan.node = node
        let former = defaults.merging(self.node.settings) { $1 }
        for (setting, value) in defaults.merging(node.settings, uniquingKeysWith: { $1 })
        where fixedSettings[setting] == nil && former[setting] != value {
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

    /// The element with this name. Nil if the node has none of it.
    public func element(_ name: String) -> ElementPlan? {
        elements.first { $0.name == name }
    }

    /// The inputs whose media can reach an output within the node.
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

/// The device of a source that is bound while the graph runs.
public struct DevicePlan: Sendable, Hashable, Codable {
    /// The device that the settings name, such as `/dev/video0` or `auto`.
    public var name: String
    /// The requested format, such as "1280x720 at 30".
    public var wish: String
    /// The elements between the device and the node's own, as the device is now. They run in a pipeline of their own, and
    /// are made again whenever the device is bound. Empty if it is not there.
    public var elements: [ElementPlan] = []
    /// The links between its elements.
    public var links: [ElementLink] = []
    /// The elements behind which the media of the node's outputs leaves, the most important output first. Empty if that is
    /// the last element.
    public var outputs: [String] = []
    /// The elements that draw the slate, one after the other. Empty for a grey one.
    public var slate: [ElementPlan] = []
    /// The reason why the device cannot be bound now.
    public var absence: String?

    /// A plan for a device that is not there.
    public init(name: String, wish: String) {
        self.name = name
        self.wish = wish
    }

    /// Takes the elements of a plan that has nothing but them.
    public mutating func take(_ plan: NodePlan) {
        (elements, links) = (plan.elements, plan.links)
    }

    /// The element with this name. Nil if the device has none of it.
    public func element(_ name: String) -> ElementPlan? {
        elements.first { $0.name == name }
    }

    /// "waits for: front; requested 1280x720 at 30". Nil if the device is there.
    public var waiting: String? {
        absence.map { "waits for: \(name == "auto" ? "any device" : name); requested \(wish) (\($0))" }
    }
}

/// One element of a node's plan.
public struct ElementPlan: Sendable, Hashable, Codable {
    /// Unique within its node.
    public var name: String
    /// GStreamer's name of the element's type, such as `vp8enc`.
    public var factory: String
    /// Properties to set when the element is created.
    public var properties: [String: SettingValue]

    /// An element of a type.
    public init(name: String, factory: String, properties: [String: SettingValue] = [:]) {
        self.name = name
        self.factory = factory
        self.properties = properties
    }
}

/// A pad of an element. Nil means `src` or `sink`; a name with `%u` is requested.
public struct ElementPad: Sendable, Hashable, Codable {
    /// The name of the element.
    public var element: String
    /// The name of the pad.
    public var pad: String?

    /// A pad of an element, by their names.
    public init(_ element: String, _ pad: String? = nil) {
        self.element = element
        self.pad = pad
    }
}

/// A link between two elements of a node.
public struct ElementLink: Sendable, Hashable, Codable {
    /// The pad that media leaves.
    public var from: ElementPad
    /// The pad that media enters.
    public var to: ElementPad

    /// A link from a pad to another one.
    public init(from: ElementPad, to: ElementPad) {
        self.from = from
        self.to = to
    }
}

/// A queue between two threads: its capacity and its overflow rule.
public struct QueuePlan: Sendable, Hashable, Codable {
    /// The rule of a full queue.
    public enum Rule: String, Sendable, Hashable, Codable {
        /// Drops the oldest entry.
        case dropOldest = "drops the oldest"
        /// Drops everything up to the next keyframe, and requests one.
        case dropToKeyframe = "drops to the next keyframe"
        /// Blocks upstream. Only for files, and for encoded media that an edit may hold.
        case wait = "waits"
    }

    /// Nil limits do not apply.
    public struct Limits: Sendable, Hashable, Codable {
        /// The most frames (buffers).
        public var frames: Int?
        /// The most bytes.
        public var bytes: Int?
        /// The most media, in seconds.
        public var seconds: Double?
        /// The rule of a full queue.
        public var rule: Rule

        /// Limits and the rule that applies at the first one that is reached.
        public init(frames: Int? = nil, bytes: Int? = nil, seconds: Double? = nil, rule: Rule) {
            self.frames = frames
            self.bytes = bytes
            self.seconds = seconds
            self.rule = rule
        }

        /// Two raw frames: the next one to process, and one that arrives meanwhile.
        public static let rawPictures = Limits(frames: 2, rule: .dropOldest)
        /// 200 ms of raw audio.
        public static let rawSound = Limits(seconds: 0.2, rule: .dropOldest)
    }

    /// The name of the queue within its node.
    public var element: String
    /// The capacity and the rule.
    public var limits: Limits
    /// Bytes of a raw frame, if its size is known.
    public var bytesPerFrame: Int?

    /// A queue by its element's name.
    public init(element: String, limits: Limits, bytesPerFrame: Int? = nil) {
        self.element = element
        self.limits = limits
        self.bytesPerFrame = bytesPerFrame
    }

    /// The queue of a link whose media may not be dropped: upstream blocks while the queue is full.
    static let encodedBranch = QueuePlan(element: "branch", limits: Limits(bytes: 16_000_000, seconds: 12, rule: .wait))

    /// The capacity in bytes; nil if it is not known.
    public var mostBytes: Int? {
        if let bytes = limits.bytes { return bytes }
        if let frames = limits.frames, let bytesPerFrame { return frames * bytesPerFrame }
        // Raw audio has 4 bytes per sample frame at 48 kHz.
        if let seconds = limits.seconds, limits.frames == nil, bytesPerFrame == nil { return Int(seconds * 192_000) }
        return nil
    }

    /// The properties of GStreamer's `queue` element.
    public var properties: [String: SettingValue] {
        [
            "leaky": limits.rule == .dropOldest ? "downstream" : "no",
            "max-size-buffers": .integer(limits.frames ?? 0), "max-size-bytes": .integer(limits.bytes ?? 0),
            "max-size-time": .integer(limits.seconds.map { Int($0 * 1e9) } ?? 0), "silent": true,
        ]
    }
}

extension MediaFormat {
    /// Bytes of one raw frame; nil for an unknown size and for other media.
    public var bytesPerFrame: Int? {
        guard kind == .rawVideo, let width, let height else { return nil }
        let halves = (width + 1) / 2 * ((height + 1) / 2)
        switch encoding {
        case "I420", "YV12", "NV12", "NV21": return width * height + 2 * halves
        case "GRAY8": return width * height
        case "RGB", "BGR": return width * height * 3
        case "RGBA", "BGRA", "ARGB", "ABGR", "RGBx", "BGRx", "xRGB", "xBGR": return width * height * 4
        default: return width * height * 2
        }
    }

    var withoutBitrate: MediaFormat {
        var format = self
        format.bitsPerSecond = nil
        return format
    }

    /// The queue of a branch whose media may be dropped; nil for media that must stay complete.
    var branchQueue: QueuePlan? {
        switch kind {
        case .rawVideo: QueuePlan(element: "branch", limits: .rawPictures, bytesPerFrame: bytesPerFrame)
        case .rawAudio: QueuePlan(element: "branch", limits: .rawSound)
        case .encodedVideo, .encodedAudio, .rtp, .data, .applicationFrames: nil
        }
    }
}
