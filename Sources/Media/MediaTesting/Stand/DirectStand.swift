public import MediaAuthoring

/// Calls a Swift capturer on its own thread and on the real clock, like a pipeline.
public struct DirectStand<Kind: Capturer>: NodeStand {
    private let make: @Sendable () -> Kind
    private let clock: any StandClock

    /// A stand for a capturer.
    ///
    /// - Parameter make: returns another value with default settings each time.
    public init(_ make: @escaping @Sendable () -> Kind) {
        self.init(make, MachineClock())
    }

    init(_ make: @escaping @Sendable () -> Kind, _ clock: any StandClock) {
        self.make = make
        self.clock = clock
    }

    public var name: String { Kind.name }
    public var settings: [SettingContract] { make().contracts }
    public var frameTimeout: Double { 5 }
    public var leavingLimit: Double { 0.05 }
    public var memoryLimit: Int { 8_000_000 }

    private func made(_ settings: [String: SettingValue]) throws(MediaError) -> Kind {
        let value = make()
        try value.begin(with: settings)
        return value
    }

    public func offers(_ consumer: CaptureConsumer) -> Bool { true }

    public func format(_ settings: [String: SettingValue]) throws -> MediaFormat? {
        try made(settings).format().media
    }

    public func open(
        _ settings: [String: SettingValue], _ consumer: CaptureConsumer
    ) async throws -> any NodeRun {
        let capturer = try made(settings)
        let format = try capturer.format()
        try format.media.checkForCapture()
        let sink = DirectSink(format.media, consumer, clock)
        return StandRun(capturer, sink, clock) { try await capturer.capture(into: CaptureOutput(format, sink)) }
    }
}

extension MediaFormat {
    /// Throws for formats that no pipeline can carry.
    func checkForCapture() throws {
        guard kind == .rawVideo || kind == .encodedVideo else { return }
        let sizes = 1...16_384
        guard let width, let height, sizes.contains(width), sizes.contains(height),
            let framesPerSecond, (0.01...1000).contains(framesPerSecond)
        else {
            throw MediaError(
                code: MediaError.Code.nodeFormat,
                message: "It states \(self). Use frames with sides of 1 to 16384 pixels, at 0.01 to 1000 frames/s.")
        }
    }
}
