import MediaAuthoring

/// Feeds a processor or renderer on a thread of its own, like a pipeline.
struct FedStand: NodeStand {
    private typealias Body = @Sendable (Feeder) async throws -> Void

    let group: Conformance.Group
    let name: String
    let settings: [SettingContract]
    /// Whether it is fed with audio instead of frames.
    let isSound: Bool
    private let clock: any StandClock
    private let make: @Sendable ([String: SettingValue]) throws -> (node: any WrittenNode, body: Body)

    init<Kind: Processor>(processor: @escaping @Sendable () -> Kind, _ clock: any StandClock) {
        group = .processor
        name = Kind.name
        settings = processor().contracts
        isSound = false
        self.clock = clock
        make = { settings in
            let node = processor()
            try node.begin(with: settings)
            return (
                node,
                { feeder in
                    var processor = node
                    try await feeder.process { try processor.process(&$0) }
                }
            )
        }
    }

    init<Kind: Renderer>(renderer: @escaping @Sendable () -> Kind, _ clock: any StandClock) {
        group = .renderer
        name = Kind.name
        settings = renderer().contracts
        isSound = Kind.Media.port.kinds == [.rawAudio]
        self.clock = clock
        make = { settings in
            let node = renderer()
            try node.begin(with: settings)
            return (node, { try await node.render($0.stream(of: Kind.Media.self)) })
        }
    }

    var frameTimeout: Double { 5 }
    var leavingLimit: Double { 0.05 }
    var memoryLimit: Int { 8_000_000 }

    func offers(_ consumer: CaptureConsumer) -> Bool { consumer == .quick }

    func format(_ settings: [String: SettingValue]) throws -> MediaFormat? {
        Feeder.format(.usual, isSound: isSound)
    }

    func open(_ settings: [String: SettingValue], _ consumer: CaptureConsumer) async throws -> any NodeRun {
        try open(settings, Feed())
    }

    func open(_ settings: [String: SettingValue], _ feed: Feed) throws -> StandRun<Feeder> {
        let (node, body) = try make(settings)
        let feeder = Feeder(feed, isSound: isSound, clock)
        return StandRun(node, feeder, clock) { try await body(feeder) }
    }
}
