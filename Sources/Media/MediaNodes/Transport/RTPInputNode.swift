import Dispatch
import GStreamerKit
public import MediaGraph
import Synchronization

/// Reads RTP packets from the program, waits for late ones, and assembles frames.
///
/// A node of another module that receives encoded media may have one of these for each of its outputs: `add` adds the
/// elements, `init(_:output:capacity:keyframeNeeded:)` starts them.
package final class RTPInputNode: NodeType, RunningNode {
    private struct State {
        var counts = MediaStatistics.RTPInput()
        /// Whether a packet has been pushed.
        var hasBegun = false
        var playout: PlayoutDelay
        /// The delay that the elements have, in seconds, and whether they have had any.
        var applied = 0.0
        var isHolding = false
        /// So that sound and video are together.
        var lipSync = SlewedHold()
        /// Of audio: whether a node downstream holds it for as long as its jitter needs.
        var isSoundHeld = false
        /// How long the jitter buffer waits for late packets of such audio, in seconds.
        var soundWait = audioSeconds
        /// Whether no frame has left the depayloader since the last keyframe request.
        var isWaiting = false
    }

    /// Depayloaders and decoders repeat their request for every packet or not at all. Senders get it at this interval.
    private static let requestInterval = DispatchTimeInterval.milliseconds(100)
    /// The first packet of a stream counts as a loss of earlier ones: the time for it to prove to be a keyframe's.
    private static let firstRequestDelay = DispatchTimeInterval.milliseconds(30)

    private let source: PushSource
    private let jitterBuffer: Element
    /// Delays the playout. Nil with a fixed latency.
    private let hold: Element?
    private let pipeline: WeakBox<Pipeline>
    private let capacity: Int
    private let encoding: String
    private let isVideo: Bool
    /// Whether the delay of its audio may follow the jitter: it has no fixed latency.
    let followsJitter: Bool
    private let isRunning = AtomicBool()
    private let state: Mutex<State>
    private let askForKeyframe: @Sendable () -> Void
    private let control: DispatchQueue
    let timestamps = TimestampMap()

    /// Assembles the frames of one output.
    ///
    /// - Parameter keyframeNeeded: called on the pipeline's control queue.
    package init(
        _ instance: NodeInstance, output: String, capacity: Int, keyframeNeeded: @escaping @Sendable () -> Void
    ) {
        self.capacity = capacity
        askForKeyframe = keyframeNeeded
        source = PushSource(instance.element("\(output)-source"))
        jitterBuffer = instance.element("\(output)-jitter-buffer")
        hold = instance.has("\(output)-playout") ? instance.element("\(output)-playout") : nil
        pipeline = WeakBox(instance.pipeline)
        control = instance.control
        encoding = instance.plan.formats[output]?.encoding ?? ""
        isVideo = Encoding.named(encoding)?.isVideo ?? true
        followsJitter = !isVideo && instance.optionalInteger("latency") == nil
        state = Mutex(State(playout: PlayoutDelay(clockRate: isVideo ? 90_000 : Self.audioClockRate)))
        if let hold {
            // The longest delay counts downstream, and none upstream, so that the element adds nothing to its own.
            jitterBuffer.source.answerLatencyQueries(seconds: 0, isLive: true)
            hold.source.answerLatencyQueries(seconds: PlayoutDelay.maximum, isLive: true)
        }
        // The pipeline's latency stays, although the jitter buffer's wait changes.
        if followsJitter { jitterBuffer.source.answerLatencyQueries(seconds: Self.audioSeconds, isLive: true) }
        // Behind the jitter buffer, packets are in order.
        if encoding == "vp9" { SpatialLayerJoiner.join(at: jitterBuffer.source) }
        watch(instance.element("\(output)-depayloader"))
    }

    package static let kind = NodeKind(
        "rtp-input", .transport, "Receives RTP packets from the program, in any order, and assembles frames",
        outputs: [Port("out", [.encodedVideo, .encodedAudio], encodings: ["vp8", "vp9", "h264", "opus"])],
        settings: [
            SettingContract(
                "codec", .choice(["vp8", "vp9", "h264", "opus"]), isRequired: true, "Codec of the packets"),
            SettingContract("payload-type", .integer(0...127), default: 96, "RTP payload type"),
            SettingContract(
                "latency", .integer(0...5000), unit: "ms",
                "Longest wait for a lost packet, without a playout delay (default: video waits up to 400 ms and is "
                    + "delayed by as much as its jitter and repairs need; audio waits 60 ms, and up to 280 ms if it "
                    + "arrives unevenly and a node plays or mixes it)"),
            SettingContract(
                "capacity", .integer(16...65_536), default: 2048, unit: "packets",
                "Capacity of the packet queue; further packets are dropped and counted"),
        ])

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        try add(
            to: &plan, output: "out", codec: request.text("codec"), payloadType: request.integer("payload-type"),
            latency: request.optionalInteger("latency"), request)
        return plan
    }

    /// The longest wait for a late audio packet by default, in milliseconds.
    package static let audioLatency = 60
    private static let audioSeconds = Double(audioLatency) / 1000
    /// The same for audio that arrives unevenly and is held downstream. A room's loudspeaker then plays it 400 ms after its
    /// arrival: video, which waits for its audio, waits no longer.
    package static let longestAudioLatency = 280
    private static let audioClockRate = 48_000
    /// The longest wait for the repair of a lost packet of video by default, in milliseconds.
    package static let videoLatency = Int(PlayoutDelay.maximum * 1000)

    /// Adds the elements of one output. Without `latency`, its playout delay follows its jitter, and of video the repairs.
    package static func add(
        to plan: inout NodePlan, output: String, codec: String, payloadType: Int, latency fixed: Int?,
        _ request: NodeRequest
    ) throws(MediaError) {
        let (source, jitterBuffer) = ("\(output)-source", "\(output)-jitter-buffer")
        let (depayloader, frames) = ("\(output)-depayloader", "\(output)-frames")
        guard let encoding = Encoding.named(codec), let (name, factory) = encoding.depayloaders.first else {
            preconditionFailure("\(codec) has no payload format")
        }
        let isVideo = encoding.isVideo
        let latency = fixed ?? (isVideo ? videoLatency : audioLatency)
        // The rate is that of all Opus (RFC 7587, section 4.1); webmmux requires it.
        let format =
            isVideo
            ? "media=video,clock-rate=90000,encoding-name=\(name)"
            : "media=audio,clock-rate=48000,encoding-name=\(name),sprop-maxcapturerate=(string)48000"
        for needed in ["rtpjitterbuffer", factory] { try request.environment.require(needed) }
        plan.add(
            "appsrc", as: source,
            PushSource.properties.merging(
                ["caps": .text("application/x-rtp,\(format),payload=(int)\(payloadType)")]) { $1 })
        // In-order packets leave immediately, and so does the first one (`push`); `latency` is the longest wait for a gap.
        // No packet is dropped because it arrived in a burst.
        // GStreamer 1.22's rtpvp9depay uses the event of a lost packet after it has freed it. It sees gaps without, too.
        let keepsLosses = factory != "rtpvp9depay"
        plan.add(
            "rtpjitterbuffer", as: jitterBuffer,
            [
                "latency": .integer(latency), "do-lost": keepsLosses ? true : false, "drop-on-latency": false,
                "faststart-min-packets": 1, "do-retransmission": false,
            ])
        plan.allowances[output] = Double(latency) / 1000
        plan.add(
            factory, as: depayloader, isVideo ? ["wait-for-keyframe": true, "request-keyframe": true] : [:])
        plan.link(source, jitterBuffer, depayloader)
        plan.outputs[output] = ElementPad(depayloader)
        if !encoding.framing.isEmpty {
            // Whole frames, because only then does the depayloader wait for keyframes.
            plan.addFilter(encoding.caps, as: frames)
            plan.link(depayloader, frames)
            plan.outputs[output] = ElementPad(frames)
        }
        if isVideo, fixed == nil {
            // Frames wait here before they are decoded. Without a delay, it passes them on without a look at the clock.
            let playout = "\(output)-playout"
            plan.add("clocksync", as: playout, ["sync": false])
            plan.link(plan.outputs[output] ?? ElementPad(depayloader), ElementPad(playout))
            plan.outputs[output] = ElementPad(playout)
        }
        var delivered =
            isVideo
            ? MediaFormat(.encodedVideo, codec)
            : MediaFormat(.encodedAudio, codec, sampleRate: 48_000, channels: 2)
        if codec == "vp9" { delivered.hasLayers = true }
        plan.formats[output] = delivered
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let (reporter, name) = (instance.reporter, instance.name)
        return RTPInputNode(
            instance, output: "out", capacity: instance.integer("capacity"),
            keyframeNeeded: { reporter.keyframeNeeded(name) })
    }

    private func watch(_ depayloader: Element) {
        let times = Mutex(RisingTimes())
        let isHeld = hold != nil
        jitterBuffer.source.watchBuffers { [timestamps, pipeline] buffer in
            guard var measured = buffer.timestamp else { return }
            // After a stall, the jitter buffer is up to a second ahead, and frames would wait for that.
            if isHeld, let now = pipeline.value?.runningTime { measured = min(measured, now) }
            guard let rtp = buffer.read(rtpTimestamp(of:)) ?? nil else { return }
            let time = times.withLock { $0.next(rtp, at: measured) }
            if time != buffer.timestamp { buffer.retime(to: time) }
            timestamps.remember(rtp, at: time)
        }
        depayloader.source.watchBuffers { [weak self] _ in
            self?.state.withLock { state in
                state.counts.framesReceived += 1
                state.isWaiting = false
            }
        }
        // Decoder and depayloader request keyframes upstream.
        source.element.source.onUpstreamEvent { [weak self] event in
            guard case .forceKeyUnit = event else { return .pass }
            self?.keyframeNeeded()
            return .drop
        }
    }

    private func keyframeNeeded() {
        let (isNews, isFirst) = state.withLock { state in
            defer { state.isWaiting = true }
            return (!state.isWaiting, state.counts.framesReceived == 0)
        }
        guard isNews else { return }
        let delay = isFirst ? Self.firstRequestDelay : .milliseconds(0)
        control.asyncAfter(deadline: .now() + delay) { [weak self] in self?.ask() }
    }

    /// Requests a keyframe, repeatedly until a frame arrives, because a request may be lost.
    private func ask() {
        let isDue = state.withLock { state in
            state.counts.keyframesNeeded += state.isWaiting ? 1 : 0
            return state.isWaiting
        }
        guard isDue, isRunning.value else { return }
        askForKeyframe()
        control.asyncAfter(deadline: .now() + Self.requestInterval) { [weak self] in self?.ask() }
    }

    func frameDecoded() {
        state.withLock { $0.counts.framesDecoded += 1 }
    }

    package func prepare() { isRunning.raise() }

    package func finish() { isRunning.lower() }

    package func push(_ packet: RawSpan) {
        let time = isRunning.value && source.waiting < capacity ? pipeline.value?.runningTime : nil
        state.withLock { state in
            state.counts.packetsReceived += 1
            guard let time, push(packet, at: time, &state) else { return state.counts.packetsDropped += 1 }
            // The time of a paused pipeline rests. The path seems shorter after it, which delays nothing.
            if hold != nil || state.isSoundHeld { follow(packet, at: time, &state) }
        }
    }

    /// The least change of the delay that is worth it, in seconds.
    private static let step = 0.005

    /// Lets the playout delay and the hold follow the arrival of a packet.
    private func follow(_ packet: RawSpan, at time: UInt64, _ state: inout State) {
        guard let timestamp = rtpTimestamp(of: packet), let number = rtpSequenceNumber(of: packet) else { return }
        state.playout.arrived(timestamp, number: number, at: MediaTime(nanoseconds: time))
        guard hold != nil else { return followSound(&state) }
        state.lipSync.advance(to: MediaTime(nanoseconds: time))
        let target = min(state.playout.target + state.lipSync.now, PlayoutDelay.maximum)
        guard abs(target - state.applied) >= Self.step || target == 0 && state.applied > 0 else { return }
        state.applied = target
        try? hold?.set("ts-offset", .integer(Int(target * 1e9)))
        guard !state.isHolding else { return }
        state.isHolding = true
        try? hold?.set("sync", true)
    }

    // MARK: Audio

    /// The least change of the wait for late audio, in seconds: each one distributes the pipeline's latency.
    private static let soundStep = 0.02

    /// So that audio as late as `PlayoutDelay` accepts is in time. Includes the decoder's time, in seconds.
    private static let soundMargin = 0.02

    /// Lets the wait for late packets follow the jitter.
    private func followSound(_ state: inout State) {
        let wait = Self.soundWait(for: state.playout)
        guard abs(wait - state.soundWait) >= Self.soundStep else { return }
        state.soundWait = wait
        try? jitterBuffer.set("latency", .integer(Int(wait * 1000)))
    }

    private static func soundWait(for playout: PlayoutDelay) -> Double {
        min(max(audioSeconds, playout.target + soundMargin), Double(longestAudioLatency) / 1000)
    }

    /// A node downstream holds the audio by `soundDelay` from now on.
    func holdSound() {
        if followsJitter { state.withLock { $0.isSoundHeld = true } }
    }

    /// Another stream begins, whose jitter is not known.
    func beginSound() {
        state.withLock { state in
            guard state.isSoundHeld else { return }
            state.playout = PlayoutDelay(clockRate: Self.audioClockRate)
            followSound(&state)
        }
    }

    /// How much later than usual audio has to be played so that nearly all of it is in time, in seconds.
    var soundDelay: Double {
        state.withLock { Self.soundDelay($0) ?? 0 }
    }

    private static func soundDelay(_ state: State) -> Double? {
        state.isSoundHeld ? soundWait(for: state.playout) - audioSeconds : nil
    }

    /// Nil before the first frame, and while the pipeline is paused.
    var playing: PlayedMedia? {
        guard let newest = timestamps.newest, let pipeline = pipeline.value,
            let running = pipeline.runningTime(at: pipeline.clock.now.nanoseconds)
        else { return nil }
        let (delay, held) = state.withLock { ($0.applied, min($0.lipSync.now, $0.applied)) }
        let ahead = Double(newest.time) / 1e9 - Double(running) / 1e9 + delay
        return PlayedMedia(
            rtpTimestamp: newest.rtp, time: pipeline.clock.now + .nanoseconds(Int64(ahead * 1e9)), hold: held)
    }

    package func hold(seconds: Double) { state.withLock { $0.lipSync.goal = seconds } }

    /// The RTP timestamp of audio that arrives now, if it is to leave the jitter buffer at once behind the audio before. Nil
    /// before the first audio.
    fileprivate var nextTimestamp: UInt32? {
        guard let newest = timestamps.newest, let pipeline = pipeline.value,
            let now = pipeline.runningTime(at: pipeline.clock.now.nanoseconds)
        else { return nil }
        let elapsed = max((Int64(now) - Int64(newest.time)) * 48 / 1_000_000, Self.packetTicks)
        return newest.rtp &+ UInt32(truncatingIfNeeded: elapsed)
    }

    /// The usual length of an Opus packet, in ticks of 48 kHz.
    private static let packetTicks: Int64 = 960

    var framesDecoded: Int { state.withLock { $0.counts.framesDecoded } }

    /// The first packet is pushed as that of the stream if it begins a keyframe, or audio.
    private func push(_ packet: RawSpan, at time: UInt64, _ state: inout State) -> Bool {
        guard !state.hasBegun else { return source.push(packet, timestamp: time) }
        state.hasBegun = true
        guard beginsStream(packet, encoding: encoding), let number = rtpSequenceNumber(of: packet) else {
            return source.push(packet, timestamp: time)
        }
        return source.push(first: packet, sequenceNumber: number, timestamp: time)
    }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        var report = state.withLock { state in
            var counts = state.counts
            counts.playoutDelay = hold == nil ? Self.soundDelay(state) : state.applied
            return counts
        }
        report.packetsLost = jitterBuffer.integer("num-lost", ofStructure: "stats")
        report.packetsLate = jitterBuffer.integer("num-late", ofStructure: "stats")
        report.packetsDuplicate = jitterBuffer.integer("num-duplicates", ofStructure: "stats")
        statistics.rtpInputs[name] = report
    }
}

/// The input for the RTP packets of one stream, which ``RTPInput`` has while it runs: decrypted packets, in any order, with
/// duplicates.
///
/// Calls never block and may come from any thread, also concurrently. Packets are dropped and counted if the input's
/// queue is full or the pipeline is not running.
public struct PacketInput: Sendable {
    let node: RTPInputNode

    /// As `MediaStatistics.RTPInput.framesDecoded`, without the cost of the other figures.
    package var framesDecoded: Int { node.framesDecoded }

    /// For audio: the RTP timestamp of a packet that arrives now, if it is to leave the jitter buffer at once behind the audio
    /// before. Nil before the first audio, and while the pipeline is paused.
    package var nextTimestamp: UInt32? { node.nextTimestamp }

    /// Pushes one packet, which is copied.
    public func push(_ packet: RawSpan) {
        node.push(packet)
    }

    /// Pushes packets that are stored one after the other in `bytes`; `ends` has the end of each. Traps if an end is
    /// beyond the bytes.
    public func push(_ bytes: [UInt8], ends: [Int]) {
        let span = bytes.span.bytes
        var start = 0
        for end in ends {
            node.push(span.extracting(start..<end))
            start = end
        }
    }
}

/// The RTP timestamps of the latest frames that left a jitter buffer, by their time in the pipeline.
final class TimestampMap: Sendable {
    private static let capacity = 256

    /// The newest last.
    private let frames = Mutex<[(time: UInt64, rtp: UInt32)]>([])

    func remember(_ rtp: UInt32, at time: UInt64) {
        frames.withLock { frames in
            if let last = frames.last, last == (time, rtp) { return }
            frames.append((time, rtp))
            if frames.count > Self.capacity { frames.removeFirst() }
        }
    }

    var newest: (time: UInt64, rtp: UInt32)? { frames.withLock { $0.last } }

    /// The timestamp of the frame with this time. Nil if it has been removed.
    func rtpTimestamp(at time: UInt64) -> UInt32? {
        frames.withLock { $0.last { $0.time == time }?.rtp }
    }
}

/// Receives the RTP packets of a stream from the program, and assembles frames.
public struct RTPInput: MediaNode {
    public var handle: NodeHandle

    /// An input for packets of video, which the program pushes.
    ///
    /// - Parameters:
    ///   - latency: the longest wait for the repair of a lost packet, without a playout delay. Nil for up to 400 ms, and a
    ///     playout delay that follows jitter and repairs.
    ///   - capacity: the most packets that wait; further ones are dropped and counted.
    public init(
        _ codec: VideoCodec, payloadType: UInt8? = nil, latency: Duration? = nil, capacity: Int? = nil
    ) {
        self.init(codec.rawValue, payloadType, latency, capacity)
    }

    /// An input for packets of audio, which the program pushes.
    ///
    /// - Parameters:
    ///   - latency: the longest wait for a late packet. Nil for 60 ms, and for up to 280 ms if the packets arrive unevenly and
    ///     a node plays or mixes the audio.
    ///   - capacity: the most packets that wait; further ones are dropped and counted.
    public init(
        _ codec: AudioCodec, payloadType: UInt8 = 111, latency: Duration? = nil, capacity: Int? = nil
    ) {
        self.init(codec.rawValue, payloadType, latency, capacity)
    }

    private init(_ codec: String, _ payloadType: UInt8?, _ latency: Duration?, _ capacity: Int?) {
        handle = NodeHandle(
            RTPInputNode.kind,
            [
                "codec": codec, "payload-type": payloadType.map { Int($0) }, "latency": latency?.inMilliseconds,
                "capacity": capacity,
            ])
    }

    /// Takes the packets. It belongs to the node as it runs now, so ask for it again after an edit that replaced the node.
    ///
    /// - Throws: `node.not-running`.
    public var input: PacketInput {
        get throws(MediaError) {
            let (pipeline, name) = try running()
            guard let input = pipeline.rtpInput(name) else { throw handle.identity.notRunning(as: name) }
            return input
        }
    }

    /// The packets that arrived so far, and the frames in them.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.RTPInput {
        get throws(MediaError) { try figures(\.rtpInputs) ?? MediaStatistics.RTPInput() }
    }
}

extension Node {
    /// Receives the RTP packets of a video stream. `latency` is the longest wait for a repair, in milliseconds.
    package static func rtpInput(
        _ name: String, codec: VideoCodec, payloadType: UInt8? = nil, latency: Int? = nil
    ) -> Node {
        let type = payloadType.map { Int($0) }
        return Node(RTPInputNode.kind, name, ["codec": codec.rawValue, "payload-type": type, "latency": latency])
    }

    /// Receives the RTP packets of an audio stream. `latency` is the longest wait for a late packet, in milliseconds.
    package static func rtpInput(
        _ name: String, codec: AudioCodec, payloadType: UInt8 = 111, latency: Int? = nil
    ) -> Node {
        Node(
            RTPInputNode.kind, name,
            ["codec": codec.rawValue, "payload-type": Int(payloadType), "latency": latency])
    }
}
