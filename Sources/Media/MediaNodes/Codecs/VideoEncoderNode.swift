import Dispatch
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization

/// A video encoder with its capture queue of 2 raw frames, which drops the oldest when a third arrives.
final class VideoEncoderNode: RunningNode {
    /// If a keyframe needs a restart, requests within this many seconds are combined.
    private static let leastRestartDistance = 0.3
    /// Elements take no less.
    private static let leastBitrate = 5000
    /// How long `finish` waits for the frames in progress.
    private static let finishLimit = DispatchTimeInterval.milliseconds(300)

    private let name: String
    private let codec: EncodedVideo
    private let queue: Element
    private let element: Element
    private let choice: VideoEncoderElement
    private let keyframeInterval: Int
    private struct Rate {
        /// The bitrate set by the application. Nil while the table decides.
        var chosen: Bitrate?
        /// The table's bitrate for the arriving size and rate. Nil before the first frame.
        var usual: Bitrate?
        var limited = EncoderRate()
        /// The element's bitrate in bits per second.
        var current = 0
    }

    /// Locked while the element's bitrate changes.
    private let rate: Mutex<Rate>
    private let ledger: FrameLedger
    private let clock: PipelineClock
    /// When the encoder was last restarted for a keyframe.
    private let restarted = Mutex<MediaTime?>(nil)

    /// Sets the properties that depend on the driver or the application, and attaches the probes.
    fileprivate init(_ instance: NodeInstance, codec: EncodedVideo) throws(MediaError) {
        name = instance.name
        self.codec = codec
        queue = instance.element("queue")
        element = instance.element("encoder")
        choice = codec.element(element.factory)
        keyframeInterval = instance.integer("keyframe-interval")
        let chosen = instance.optionalInteger("bitrate").map(Bitrate.init(bitsPerSecond:))
        rate = Mutex(Rate(chosen: chosen))
        // A receiver of warnings may block.
        ledger = FrameLedger { [name, reporter = instance.reporter, control = instance.control] frames in
            control.async {
                reporter.warn(
                    name,
                    "The encoder has delivered nothing for \(frames) frames. Its driver, or a node after it, is not "
                        + "responding. Use another encoder if that stays so.")
            }
        }
        clock = instance.pipeline.clock
        if choice.isHardware {
            for (name, value) in choice.properties(keyframeInterval: keyframeInterval) {
                _ = element.trySet(name, value)
            }
        }
        if let chosen { try rate.withLock { (rate) throws(MediaError) in try wish(for: chosen, &rate) } }
        watch()
    }

    // MARK: Contract

    static func kind(of codec: EncodedVideo) -> NodeKind {
        NodeKind(
            "\(codec.name)-encoder", .codec,
            "\(codec.title)\(codec.profile.map { " " + $0.replacing("-", with: " ") } ?? "") at a constant bitrate, "
                + "after a queue of 2 frames that drops the oldest",
            inputs: [Port("in", [.rawVideo], encodings: codec.pixelFormats)],
            outputs: [Port("out", [.encodedVideo], encodings: [codec.name])],
            settings: settings)
    }

    private static let settings = [
        SettingContract(
            "bitrate", .integer(30_000...100_000_000), isChangeable: true, unit: "bit/s",
            "Constant bitrate (default: that of docs/bitrates.md)"
        ).example(800_000),
        SettingContract(
            "keyframe-interval", .integer(1...100_000), default: 3000, unit: "frames",
            "Longest interval between keyframes without a request"),
        SettingContract(
            "element", .text, default: "auto",
            "The GStreamer element to use; auto is the first usable one, hardware first"),
    ]

    // MARK: Planning

    /// The input, with the pixel formats that the element takes.
    static func input(
        _ port: Port, of node: Node, codec: EncodedVideo, running: NodePlan?, on environment: any PlanEnvironment
    ) -> Port {
        let factory = running?.element("encoder")?.factory
        let request = NodeRequest(node, kind(of: codec), environment: environment)
        // An element that cannot be chosen is reported when the node is planned.
        guard let element = factory.map(codec.element) ?? (try? choose(request, codec))?.element else { return port }
        return Port(port.name, port.kinds, encodings: element.pixelFormats)
    }

    static func plan(_ request: NodeRequest, codec: EncodedVideo) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? .rawVideo()
        if let width = input.width, let height = input.height,
            let error = oddSize(width, height, of: request.name, codec)
        {
            throw error
        }
        let bitrate = request.optionalInteger("bitrate") ?? codec.defaultBitrate(for: input)?.bitsPerSecond
        let (choice, passedOver) = try choose(request, codec)
        var plan = NodePlan(request.node)
        plan.passedOver = passedOver
        plan.notes.append("\(choice.factory) encodes, in \(choice.isHardware ? "hardware" : "software")")
        plan.addQueue(as: "queue", .rawPictures, holding: input)
        // Hardware differs from driver to driver, so the properties are set on the created element, as far as it
        // accepts them.
        var properties =
            choice.isHardware ? [:] : choice.properties(keyframeInterval: request.integer("keyframe-interval"))
        if properties["threads"] != nil, let width = input.width, let height = input.height {
            properties["threads"] = .integer(threads(forPixels: width * height))
        }
        if choice.needsFineTime {
            plan.add("capssetter", as: "fine-time", ["caps": "video/x-raw,framerate=90000/1"])
        }
        plan.add(choice.factory, as: "encoder", properties)
        if choice.needsFineTime {
            let rate = input.framesPerSecond.map(fraction) ?? "0/1"
            plan.add("capssetter", as: "frame-rate", ["caps": .text("video/x-\(codec.name),framerate=\(rate)")])
        }
        if let profile = codec.profile, let encoding = Encoding.named(codec.name) {
            plan.addFilter("\(encoding.mediaType),profile=\(profile)\(encoding.framing)", as: "profile")
        }
        plan.chain(
            to: MediaFormat(
                .encodedVideo, codec.name, width: input.width, height: input.height,
                framesPerSecond: input.framesPerSecond, bitsPerSecond: bitrate))
        if let bitrate = codec.defaultBitrate(for: input)?.bitsPerSecond {
            plan.defaults["bitrate"] = .integer(bitrate)
        }
        if let encoder = plan.element("encoder") {
            plan.latency = request.environment.secondsPerFrame(encoder, input)
        }
        return plan
    }

    /// The element named by the node, or the first usable one of the table.
    private static func choose(
        _ request: NodeRequest, _ codec: EncodedVideo
    ) throws(MediaError) -> (element: VideoEncoderElement, passedOver: [String]) {
        let known = codec.elements.map(\.factory)
        let wanted = request.text("element")
        guard wanted == "auto" || known.contains(wanted) else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\"\(request.name)\".element is \(wanted), which is not a known encoder for \(codec.title). "
                    + "Choose one of auto, \(known.joined(separator: ", ")).")
        }
        guard wanted == "auto" else {
            try request.environment.require(wanted)
            return (codec.element(wanted), [])
        }
        let (factory, passedOver) = try request.environment.firstUsable(of: known)
        return (codec.element(factory), passedOver)
    }

    // MARK: Running

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard setting == "bitrate", let bitrate = value.integer else { return false }
        let chosen = Bitrate(bitsPerSecond: bitrate)
        try rate.withLock { (rate) throws(MediaError) in
            try wish(for: chosen, &rate)
            rate.chosen = chosen
        }
        return true
    }

    func reset(_ setting: String) throws(MediaError) {
        guard setting == "bitrate" else { return }
        try rate.withLock { (rate) throws(MediaError) in
            if let usual = rate.usual { try wish(for: usual, &rate) }
            rate.chosen = nil
        }
    }

    /// Sets the bitrate that the encoder has without a limit.
    private func wish(for bitrate: Bitrate, _ rate: inout Rate) throws(MediaError) {
        rate.limited.setWish(bitrate.bitsPerSecond)
        try apply(&rate)
    }

    /// Gives the element the bitrate that wish and limits leave.
    private func apply(_ rate: inout Rate) throws(MediaError) {
        let bitrate = max(Self.leastBitrate, rate.limited.bitrate)
        let (wished, limit) = (rate.limited.wish, rate.limited.limit)
        ledger.update { ($0.wishedBitsPerSecond, $0.limitedBitsPerSecond) = (wished, limit) }
        guard wished > 0, bitrate != rate.current else { return }
        let share = choice.countsFrames ? max(rate.limited.frameShare, 0.1) : 1
        let (property, value) = choice.rateProperty(
            Int(Double(bitrate) / share), keyframeInterval: keyframeInterval)
        try element.set(property, value)
        rate.current = bitrate
        ledger.update { $0.targetBitsPerSecond = bitrate }
    }

    /// A consumer's network carries no more than this. On any thread.
    private func limit(_ bitsPerSecond: Int, by source: UInt64) {
        rate.withLock { rate in
            rate.limited.setLimit(bitsPerSecond, by: source, now: GStreamer.now)
            try? apply(&rate)
        }
    }

    /// Whether the network has room for the next frame.
    private func admitsFrame(at timestamp: UInt64) -> Bool {
        rate.withLock { rate in
            let before = rate.limited.limit
            rate.limited.update(now: GStreamer.now)
            if rate.limited.limit != before { try? apply(&rate) }
            return rate.limited.admitsFrame(at: timestamp)
        }
    }

    /// One thread up to 720p: two that share busy cores wait for each other, which was seen to turn 2 ms into 200.
    static func threads(forPixels pixels: Int) -> Int {
        pixels > 1280 * 720 ? max(1, min(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 4)) : 1
    }

    private func watch() {
        let ledger = ledger
        queue.sink.watchEvents { [weak self] event in
            if case .caps(let caps) = event { self?.adapt(to: caps) }
        }
        queue.sink.onBuffer { [weak self] buffer in
            guard self?.admitsFrame(at: buffer.timestamp ?? 0) != false else {
                ledger.droppedForRate()
                return .drop
            }
            return ledger.captured(buffer.timestamp ?? 0) ? .pass : .drop
        }
        queue.source.watchBuffers { buffer in ledger.left(buffer.timestamp ?? 0) }
        let restarts = choice.restartsForKeyframe
        element.source.onUpstreamEvent { [weak self] event in
            switch event {
            case .forceKeyUnit where restarts: self?.startAnew()
            case .rateLimit(let source, let rate): self?.limit(rate, by: source)
            default: return .pass
            }
            return .drop
        }
        element.source.watchBuffers { [weak self] buffer in
            ledger.encoded(bytes: buffer.byteCount, isKeyframe: buffer.isKeyframe)
            self?.rate.withLock { $0.limited.encoded(bytes: buffer.byteCount) }
        }
    }

    /// Uses the table's bitrate for the arriving size and rate, unless one was set.
    private func adapt(to caps: Caps) {
        guard let format = caps.structures.first.flatMap(MediaFormat.init), let width = format.width,
            let height = format.height
        else { return }
        ledger.update { ($0.width, $0.height) = (width, height) }
        // Before the caps, because the encoder opens when they arrive. Not every element accepts this so late; the plan
        // has set it already if it knew the size.
        let threads = Self.threads(forPixels: width * height)
        if !choice.isHardware, element.has("threads"), element.integer("threads") != threads {
            _ = element.trySet("threads", .integer(threads))
        }
        rate.withLock { rate in
            rate.usual = codec.defaultBitrate(for: format)
            if rate.chosen == nil, let usual = rate.usual { try? wish(for: usual, &rate) }
        }
    }

    func requestKeyframe() {
        element.source.requestKeyframe()
    }

    /// Restarts the encoder between two frames, so that it begins with a keyframe. Nothing is lost, because it holds no
    /// frame back. Takes a millisecond.
    private func startAnew() {
        // The first frame is a keyframe anyway. Before it, the start of the stream may be on its way into the encoder
        // and would be lost.
        guard ledger.statistics.encoded > 0 else { return }
        let isDue = restarted.withLock { last in
            let now = clock.now
            if let last, now.seconds(since: last) < Self.leastRestartDistance { return false }
            last = now
            return true
        }
        guard isDue, let before = element.sink.peer else { return }
        before.whenIdle { [element] in
            let input = element.sink
            before.unlink(input)
            element.setState(.ready)
            _ = element.followPipeline()
            _ = before.link(input)
        }
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        let counts = ledger.statistics
        return Self.oddSize(counts.width, counts.height, of: name, codec, cause: failure.message)
    }

    /// The error for frames of an odd width or height, which not every codec supports. Nil for others.
    private static func oddSize(
        _ width: Int, _ height: Int, of node: String, _ codec: EncodedVideo, cause: String? = nil
    ) -> MediaError? {
        guard codec.needsEvenSize, !width.isMultiple(of: 2) || !height.isMultiple(of: 2) else { return nil }
        return MediaError(
            code: MediaError.Code.formatClash,
            message: "\"\(node)\" cannot encode frames of \(width)x\(height): \(codec.title) needs an even width and "
                + "an even height. Encode as VP8, or put a scale node with an even width and height upstream.",
            cause: cause)
    }

    func finish() {
        ledger.close(waiting: Self.finishLimit)
        // The last frame was counted when it left the encoder, but may still be on its way to the program. That happens
        // inside the queue's push, so the queue's output is idle afterwards.
        let isHandedOver = DispatchSemaphore(value: 0)
        queue.source.whenIdle { isHandedOver.signal() }
        _ = isHandedOver.wait(timeout: .now() + Self.finishLimit)
    }

    func stopped() {
        ledger.settle()
    }

    var counts: MediaStatistics.VideoEncoder { ledger.statistics }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.encoders[name] = counts
    }
}

extension EncodedVideo {
    /// An element of the table. Traps for others.
    fileprivate func element(_ factory: String) -> VideoEncoderElement {
        guard let element = elements.first(where: { $0.factory == factory }) else {
            preconditionFailure("\(factory) is not in the table")
        }
        return element
    }

    /// The node that encodes with this codec.
    var encoder: NodeImplementation {
        NodeImplementation(
            kind: VideoEncoderNode.kind(of: self),
            input: { port, node, running, environment in
                VideoEncoderNode.input(port, of: node, codec: self, running: running, on: environment)
            },
            plan: { (request) throws(MediaError) in try VideoEncoderNode.plan(request, codec: self) },
            activate: { (instance) throws(MediaError) in try VideoEncoderNode(instance, codec: self) })
    }
}
