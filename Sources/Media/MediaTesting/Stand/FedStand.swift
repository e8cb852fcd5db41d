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

    init<Kind: Processor>(processor kind: Kind.Type, _ clock: any StandClock) {
        group = .processor
        name = Kind.name
        settings = Kind().contracts
        isSound = false
        self.clock = clock
        make = { settings in
            let node = try Kind(settings)
            return (
                node,
                { feeder in
                    var processor = node
                    try await feeder.process { try processor.process(&$0) }
                }
            )
        }
    }

    init<Kind: Renderer>(renderer kind: Kind.Type, _ clock: any StandClock) {
        group = .renderer
        name = Kind.name
        settings = Kind().contracts
        isSound = Kind.Media.port.kinds == [.rawAudio]
        self.clock = clock
        make = { settings in
            let renderer = try Kind(settings)
            return (renderer, { try await renderer.render($0.stream(of: Kind.Media.self)) })
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

    func open(_ settings: [String: SettingValue], _ feed: Feed) throws -> FedRun {
        let (node, body) = try make(settings)
        return FedRun(node, Feeder(feed, isSound: isSound, clock), clock, body)
    }
}

/// A running processor or renderer.
final class FedRun: NodeRun {
    let feeder: Feeder
    private let node: any WrittenNode
    private let task: StandTask

    init(
        _ node: any WrittenNode, _ feeder: Feeder, _ clock: any StandClock,
        _ body: @escaping @Sendable (Feeder) async throws -> Void
    ) {
        self.node = node
        self.feeder = feeder
        task = StandTask(clock)
        task.start { try await body(feeder) }
    }

    var units: [MediaUnit] { feeder.units }
    var outcome: NodeOutcome? { task.outcome }
    /// When it returned, on the machine's clock.
    var left: MediaTime? { task.left }

    func set(_ setting: String, to value: SettingValue) async throws {
        try node.set(setting, to: value)
    }

    func stop() async -> Double? { await task.stop() }
}
