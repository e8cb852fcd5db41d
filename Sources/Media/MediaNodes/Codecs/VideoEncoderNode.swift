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
    /// The least share of the frames for which an element that counts frames gets a higher bitrate.
    private static let leastFrames = 0.1
    /// How long `finish` waits for the frames in progress.
    private static let finishLimit = DispatchTimeInterval.milliseconds(300)

    private let name: String
    private let codec: EncodedVideo
    private let queue: Element
    private let element: Element
    private let choice: VideoEncoderElement
    private let keyframeInterval: Int
    private let layer: VideoLayer

    /// The values that the elements have.
    private struct Applied {
        /// Of the bitrate, in the element's own unit.
        var value: SettingValue?
        /// The most bits of a keyframe, in percent of a frame's.
        var keyframePercent: Int?
        var step: VideoAdaptation.Step?
    }

    /// Locked briefly: consumers must not wait for the encoder.
    private let quality: Mutex<EncoderQuality>
    /// Locked while the properties of the elements change, for which the encoder may have to finish a frame.
    private let applied = Mutex(Applied())
    /// Changes the size of the frames. Nil if the size does not change.
    private let scaler: FrameScaler?
    private let reporter: Reporter
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
        layer = VideoLayer(rawValue: instance.text("layer")) ?? .full
        scaler =
            instance.has("scale") ? FrameScaler(instance.element("scale"), instance.element("size"), layer) : nil
        reporter = instance.reporter
        quality = Mutex(
            EncoderQuality(
                chosen: chosen, isScalable: instance.plan.defaults["degradation"] != nil,
                policy: Degradation(rawValue: instance.text("degradation")),
                usualPolicy: instance.plan.defaults["degradation"]?.text.flatMap(Degradation.init) ?? .motion,
                isOnDemand: layer != .full,
                // The plan adds a scaler if all consumers are peers.
                isNeeded: layer == .full && scaler == nil))
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
        if let chosen { try wish(chosen) }
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
        Degradation.setting,
        SettingContract(
            "layer", .choice(VideoLayer.allCases.reversed().map(\.rawValue)), default: .text(VideoLayer.full.rawValue),
            "Layer of a published video; half and quarter divide width and height by 2 and 4, and are encoded only while a "
                + "room wants them"),
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
        let layer = VideoLayer(rawValue: request.text("layer")) ?? .full
        let arriving = request.input("in") ?? .rawVideo()
        let input = layer.scaled(arriving)
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
        plan.addQueue(as: "queue", .rawPictures, holding: arriving)
        if layer != .full {
            plan.notes.append("the \(layer.rawValue) layer: encodes only while a room wants it")
            try request.environment.require("videoscale")
        }
        // Hardware differs from driver to driver, so the properties are set on the created element, as far as it
        // accepts them.
        var properties =
            choice.isHardware ? [:] : choice.properties(keyframeInterval: request.integer("keyframe-interval"))
        if properties["threads"] != nil, let width = input.width, let height = input.height {
            properties["threads"] = .integer(threads(forPixels: width * height))
        }
        let follows = followsNetwork(request, codec)
        if follows || layer != .full {
            plan.add("videoscale", as: "scale", ["add-borders": false])
            plan.add("capsfilter", as: "size", layer == .full ? [:] : ["caps": .text("video/x-raw" + input.size)])
        }
        if follows {
            let policy: Degradation = request.sources.contains("screen") ? .detail : .motion
            plan.defaults["degradation"] = .text(policy.rawValue)
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

    /// Whether the size may follow the network: all consumers send to peers, which can take another size. A recording cannot.
    private static func followsNetwork(_ request: NodeRequest, _ codec: EncodedVideo) -> Bool {
        ["vp8", "vp9", "h264"].contains(codec.name) && request.demands["out"]?.reachesOnlyPeers == true
            && request.environment.hasElement("videoscale")
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
        switch setting {
        case "bitrate":
            guard let bitrate = value.integer else { return false }
            let chosen = Bitrate(bitsPerSecond: bitrate)
            try wish(chosen)
            quality.withLock { $0.chosen = chosen }
        case "degradation": quality.withLock { $0.setPolicy(value.text.flatMap(Degradation.init)) }
        default: return false
        }
        return true
    }

    func reset(_ setting: String) throws(MediaError) {
        guard setting == "bitrate" else { return }
        if let usual = quality.withLock({ $0.usual }) { try wish(usual) }
        quality.withLock { $0.chosen = nil }
    }

    /// Sets the bitrate that the encoder has without a limit. May wait for a frame that is being encoded.
    private func wish(_ bitrate: Bitrate) throws(MediaError) {
        let before = quality.withLock { quality in
            defer { quality.setWish(bitrate.bitsPerSecond) }
            return quality.wish
        }
        do throws(MediaError) {
            try applied.withLock { (applied) throws(MediaError) in
                try apply(quality.withLock { $0.target }, &applied)
            }
        } catch {
            quality.withLock { $0.setWish(before) }
            throw error
        }
    }

    /// Gives the element the bitrate that wish and limits leave.
    private func apply(_ target: EncoderQuality.Target, _ applied: inout Applied) throws(MediaError) {
        guard target.bitrate > 0 || quality.withLock({ $0.wish > 0 }) else { return }
        let bitrate = max(Self.leastBitrate, target.bitrate)
        let share = choice.countsFrames ? max(target.frameShare * target.pace, Self.leastFrames) : 1
        if choice.countsFrames, let (property, percent) = choice.keyframeLimit {
            // A frame has more bits if others are skipped. A keyframe has not, because it takes longer to send already.
            let percent = target.frameShare > 0 ? Int(Double(percent) * min(1, share)) : 0
            if percent > 0, percent != applied.keyframePercent, element.trySet(property, .integer(percent)) == nil {
                applied.keyframePercent = percent
            }
        }
        let (property, value) = choice.rateProperty(
            Int(Double(bitrate) / share), keyframeInterval: keyframeInterval)
        guard value != applied.value else { return }
        try element.set(property, value)
        applied.value = value
        ledger.update { $0.targetBitsPerSecond = bitrate }
    }

    /// Follows network and processor before a frame enters the scaler and the encoder, on the thread that encodes.
    ///
    /// - Parameter dropped: the frames that were dropped before it, because the encoder was busy.
    private func prepareFrame(after dropped: Int) {
        let (target, quality) = quality.withLock { quality in
            (quality.prepareFrame(after: dropped, now: GStreamer.now), quality.quality)
        }
        let isNew = applied.withLock { applied in
            // The bitrate that a larger size needs comes before it, and a smaller one opens with its own.
            try? apply(target, &applied)
            scaler?.follow(target.size)
            defer { applied.step = target.step }
            return applied.step != target.step && applied.step != nil
        }
        if isNew { reporter.qualityChanged(name, quality) }
    }

    /// One thread up to 720p: two that share busy cores wait for each other, which was seen to turn 2 ms into 200.
    static func threads(forPixels pixels: Int) -> Int {
        pixels > 1280 * 720 ? max(1, min(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 4)) : 1
    }

    /// Hides gaps between frames from the encoder.
    private func hideGaps() {
        let times = Mutex(ConstantRateTimestamps())
        element.sink.watchEvents { event in
            switch event {
            case .segment: times.withLock { $0.beginSegment() }
            case .caps(let caps):
                let format = caps.structures.first.flatMap(MediaFormat.init)
                times.withLock { $0.setRate(format?.framesPerSecond) }
            default: break
            }
        }
        element.sink.watchBuffers { buffer in
            guard let timestamp = buffer.timestamp else { return }
            let original = ConstantRateTimestamps.Frame(timestamp: timestamp, duration: buffer.duration)
            let replaced = times.withLock { $0.replace(original) }
            buffer.retime(to: replaced.timestamp)
            buffer.setDuration(replaced.duration)
        }
        element.source.watchBuffers { buffer in
            guard let timestamp = buffer.timestamp,
                let original = times.withLock({ $0.original(of: timestamp) })
            else { return }
            buffer.move(to: original.timestamp)
            buffer.setDuration(original.duration)
        }
    }

    private func watch() {
        if choice.needsConstantRate { hideGaps() }
        let ledger = ledger
        queue.sink.watchEvents { [weak self] event in
            if case .caps(let caps) = event { self?.adapt(to: caps) }
        }
        queue.sink.onBuffer { [weak self] buffer in
            let timestamp = buffer.timestamp ?? 0
            let isAdmitted = self?.quality.withLock { $0.admitsFrame(at: timestamp, now: GStreamer.now) }
            guard isAdmitted != false else {
                ledger.droppedForRate()
                return .drop
            }
            return ledger.captured(timestamp) ? .pass : .drop
        }
        queue.source.watchBuffers { [weak self] buffer in
            let dropped = ledger.left(buffer.timestamp ?? 0)
            self?.prepareFrame(after: dropped)
        }
        let restarts = choice.restartsForKeyframe
        element.source.onUpstreamEvent { [weak self] event in
            if case .forceKeyUnit = event { self?.quality.withLock { $0.demandKeyframe() } }
            switch event {
            case .forceKeyUnit where restarts: self?.startAnew()
            case .rateLimit(let source, let rate, let policy, let keepsSize):
                self?.quality.withLock {
                    $0.setLimit(rate, by: source, policy: policy, keepsSize: keepsSize, now: GStreamer.now)
                }
            case .sizeHold: self?.quality.withLock { $0.holdSize() }
            default: return .pass
            }
            return .drop
        }
        element.source.watchBuffers { [weak self] buffer in
            ledger.encoded(bytes: buffer.byteCount, isKeyframe: buffer.isKeyframe)
            let (bytes, isKeyframe) = (buffer.byteCount, buffer.isKeyframe)
            self?.quality.withLock { $0.encoded(bytes: bytes, isKeyframe: isKeyframe, now: GStreamer.now) }
        }
        element.sink.watchEvents { event in
            guard case .caps(let caps) = event, let format = caps.structures.first.flatMap(MediaFormat.init) else {
                return
            }
            ledger.update { ($0.width, $0.height) = (format.width ?? 0, format.height ?? 0) }
        }
    }

    /// Uses the table's bitrate for the arriving size and rate, unless one was set.
    private func adapt(to caps: Caps) {
        guard let format = caps.structures.first.flatMap(MediaFormat.init).map(layer.scaled), let width = format.width,
            let height = format.height
        else { return }
        scaler?.setSource(caps)
        // Before the caps, because the encoder opens when they arrive. Not every element accepts this so late; the plan
        // has set it already if it knew the size.
        let threads = Self.threads(forPixels: width * height)
        if !choice.isHardware, element.has("threads"), element.integer("threads") != threads {
            _ = element.trySet("threads", .integer(threads))
        }
        let usual = codec.defaultBitrate(for: format)
        let isUsual = quality.withLock { quality in
            quality.setSource(width, height, framesPerSecond: format.framesPerSecond)
            quality.usual = usual
            return quality.chosen == nil
        }
        if isUsual, let usual { try? wish(usual) }
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

    var counts: MediaStatistics.VideoEncoder {
        var counts = ledger.statistics
        let (wish, quality) = quality.withLock { quality in
            (counts.isResting, counts.load, counts.isOverloaded) = (
                quality.isResting, quality.load, quality.isOverloaded
            )
            return (quality.wish, quality.quality)
        }
        (counts.wishedBitsPerSecond, counts.limitedBitsPerSecond) = (wish, quality.limitedBitsPerSecond)
        counts.framesPerSecond = quality.framesPerSecond
        counts.limitation =
            quality.limitation == .none && !counts.encoderKeepsUp ? .processor : quality.limitation
        return counts
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.encoders[name] = counts
    }
}

/// The elements that change the size of the frames in front of an encoder. Frames of the source's size pass untouched.
private final class FrameScaler: Sendable {
    private let filter: Element
    private let layer: VideoLayer
    private let isPlain = AtomicBool(true)
    /// The layer's size of the arriving frames. Nil for the whole layer, and before the first frame.
    private let whole = Mutex<EncoderQuality.Size?>(nil)
    /// The size that the filter has. Nil for the whole one.
    private let current = Mutex<EncoderQuality.Size?>(nil)
    /// Whether a change is on its way through the elements, on the streaming thread.
    private let isChanging = AtomicBool()

    init(_ scale: Element, _ filter: Element, _ layer: VideoLayer) {
        (self.filter, self.layer) = (filter, layer)
        if layer != .full {
            // Before the scaler sees the caps of the frames that follow.
            scale.sink.watchEvents { [weak self] event in
                guard case .caps(let caps) = event,
                    let format = caps.structures.first.flatMap(MediaFormat.init).map(layer.scaled),
                    let width = format.width, let height = format.height
                else { return }
                self?.whole.withLock { $0 = EncoderQuality.Size(width: width, height: height) }
                self?.set(nil)
            }
        }
        // The elements upstream keep their format.
        scale.sink.onUpstreamEvent { [isChanging] event in
            if case .reconfigure = event, isChanging.value { return .drop }
            return .pass
        }
    }

    /// Keeps the shape of pixels, which is square unless the source says otherwise.
    func setSource(_ caps: Caps) {
        let shape = caps.structures.first?.fractions("pixel-aspect-ratio").first ?? 1
        _ = isPlain.exchange(abs(shape - 1) < 1e-6)
    }

    /// The size of the frames from the next one on; nil for that of the source. On the streaming thread.
    func follow(_ size: EncoderQuality.Size?) { if size != current.withLock({ $0 }) { set(size) } }

    private func set(_ reduced: EncoderQuality.Size?) {
        current.withLock { $0 = reduced }
        let size = reduced ?? whole.withLock { $0 }
        let shape = isPlain.value ? ",pixel-aspect-ratio=1/1" : ""
        _ = isChanging.exchange(true)
        _ = filter.trySet(
            "caps", .text(size.map { "video/x-raw,width=\($0.width),height=\($0.height)\(shape)" } ?? "ANY"))
        _ = isChanging.exchange(false)
    }
}

extension Degradation {
    /// The setting of encoders and of nodes that publish.
    package static let setting = SettingContract(
        "degradation", .choice(["auto"] + allCases.map(\.rawValue)), default: "auto", isChangeable: true,
        "Property that the video keeps when the network carries less or the machine is too slow: motion its frame rate, detail its "
            + "size, balanced neither alone; auto is detail for screens and motion for others")
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
