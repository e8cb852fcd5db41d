import Dispatch
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization

/// A video encoder behind its capture queue: 2 raw frames, the oldest is dropped when a third comes.
final class VideoEncoderNode: RunningNode {
    private static let queueCapacity = 2
    /// How long `finish` waits for the frames that are under way.
    private static let finishLimit = DispatchTimeInterval.milliseconds(300)

    let name: String
    let codec: VideoCodec
    private let queue: Element
    private let element: Element
    private let chosenBitrate: Bitrate?
    private let ledger: FrameLedger

    private init(_ instance: NodeInstance, codec: VideoCodec) {
        name = instance.name
        self.codec = codec
        queue = instance.element("queue")
        element = instance.element("encoder")
        chosenBitrate = instance.setting("bitrate")?.integer.map(Bitrate.init(bitsPerSecond:))
        ledger = FrameLedger()
    }

    static func plan(_ request: NodeRequest, codec: VideoCodec) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? .rawVideo()
        let interval = request.integer("keyframe-interval") ?? 3000
        let bitrate = request.integer("bitrate") ?? input.defaultBitrate(codec)?.bitsPerSecond
        var plan = NodePlan(request.node)
        plan.addQueue(as: "queue", .rawPictures, holding: input)
        let factory = codec == .vp8 ? "vp8enc" : "x264enc"
        try request.environment.require(factory)
        plan.add(
            factory, as: "encoder",
            codec == .vp8 ? vp8Properties(keyframeInterval: interval) : h264Properties(keyframeInterval: interval))
        plan.link("queue", "encoder")
        plan.inputs["in"] = ElementPad("queue")
        if codec == .h264 {
            plan.addFilter(
                "video/x-h264,profile=constrained-baseline,stream-format=byte-stream,alignment=au", as: "profile")
            plan.link("encoder", "profile")
            plan.outputs["out"] = ElementPad("profile")
        } else {
            plan.outputs["out"] = ElementPad("encoder")
        }
        plan.formats["out"] = MediaFormat(
            .encodedVideo, codec.rawValue, width: input.width, height: input.height,
            framesPerSecond: input.framesPerSecond, bitsPerSecond: bitrate)
        if let encoder = plan.element("encoder") {
            plan.latency = request.environment.secondsPerFrame(encoder, input)
        }
        return plan
    }

    static func activate(_ instance: NodeInstance, codec: VideoCodec) -> VideoEncoderNode {
        let running = VideoEncoderNode(instance, codec: codec)
        if let bitrate = running.chosenBitrate { running.setBitrate(bitrate) }
        running.watch()
        return running
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard setting == "bitrate", let bitrate = value.integer else { return false }
        setBitrate(Bitrate(bitsPerSecond: bitrate))
        return true
    }

    /// Realtime VP8: one pass, no frame held back, none dropped, quantizers and buffers as browsers set them.
    private static func vp8Properties(keyframeInterval: Int) -> [String: SettingValue] {
        [
            "deadline": 1, "cpu-used": -8, "threads": 1, "end-usage": "cbr",
            "lag-in-frames": 0, "dropframe-threshold": 0, "error-resilient": 0,
            "keyframe-max-dist": .integer(keyframeInterval), "min-quantizer": 2, "max-quantizer": 56,
            "undershoot": 100, "overshoot": 15, "buffer-initial-size": 500, "buffer-optimal-size": 600,
            "buffer-size": 1000, "max-intra-bitrate": 600, "static-threshold": 1, "token-partitions": "2",
        ]
    }

    private static func h264Properties(keyframeInterval: Int) -> [String: SettingValue] {
        [
            "tune": "zerolatency", "speed-preset": "superfast", "byte-stream": true, "bframes": 0,
            "key-int-max": .integer(keyframeInterval), "threads": 1, "aud": false,
            "vbv-buf-capacity": 600, "option-string": "scenecut=0",
        ]
    }

    /// One thread up to 720p: two that share busy cores wait for one another, which was seen to turn 2 ms into 200.
    private static func threads(forPixels pixels: Int) -> Int {
        pixels > 1280 * 720 ? max(1, min(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 4)) : 1
    }

    private func watch() {
        let ledger = ledger
        queue.sink.onEvent { [weak self] event in
            if case .caps(let caps) = event { self?.adapt(to: caps) }
            return .pass
        }
        queue.sink.onBuffer { buffer in ledger.captured(buffer.timestamp ?? 0) ? .pass : .drop }
        queue.source.onBuffer { buffer in
            ledger.left(buffer.timestamp ?? 0)
            return .pass
        }
        element.source.onBuffer { buffer in
            ledger.encoded(bytes: buffer.byteCount, isKeyframe: buffer.isKeyframe)
            return .pass
        }
    }

    /// Takes the table's bitrate for the size and rate that arrive, unless one was chosen.
    private func adapt(to caps: Caps) {
        guard let format = caps.structures.first, let width = format.integer("width"),
            let height = format.integer("height")
        else { return }
        ledger.set(width: width, height: height)
        // Ahead of the caps: the encoder opens when they reach it.
        element.set("threads", .integer(Self.threads(forPixels: width * height)))
        guard chosenBitrate == nil else { return }
        let rate = format.fractions("framerate").first ?? 0
        setBitrate(
            VideoBitrate.default(
                width: width, height: height, framesPerSecond: rate > 0 ? rate : 30, codec: codec))
    }

    func setBitrate(_ bitrate: Bitrate) {
        switch codec {
        case .vp8: element.set("target-bitrate", .integer(bitrate.bitsPerSecond))
        case .h264: element.set("bitrate", .integer(max(bitrate.kilobitsPerSecond, 1)))
        }
        ledger.set(bitrate: bitrate)
    }

    func requestKeyframe() {
        element.source.requestKeyframe()
    }

    /// Whether the frame that the encoder gave last, on this thread, is a keyframe.
    var lastIsKeyframe: Bool { ledger.lastIsKeyframe }

    func finish() {
        ledger.close(waiting: Self.finishLimit)
        // The last frame was counted when it left the encoder; it may still be on its way to the program. All of that
        // happens inside the queue's push, so the queue's output is idle when it is done.
        let isHandedOver = DispatchSemaphore(value: 0)
        queue.source.whenIdle { isHandedOver.signal() }
        _ = isHandedOver.wait(timeout: .now() + Self.finishLimit)
    }

    func stopped() {
        ledger.settle()
    }

    func report(into statistics: inout MediaStatistics) {
        statistics.encoders[name] = ledger.statistics
    }
}

/// Where every captured frame went: encoded, dropped by the capture queue, or still under way.
final class FrameLedger: Sendable {
    /// How long after a drop the encoder is said not to keep up.
    private static let memory: Double = 2

    private struct State {
        var counts = MediaStatistics.VideoEncoder()
        /// Timestamps of the frames in the queue, oldest first; at most three for a moment.
        var queued: [UInt64] = []
        var lastDrop: MediaTime?
        var lastIsKeyframe = false
        var isClosed = false
        var onIdle: DispatchSemaphore?

        mutating func drop() {
            counts.droppedBeforeEncoder += 1
            lastDrop = GStreamer.now
        }

        var underWay: Int { counts.captured - counts.encoded - counts.droppedBeforeEncoder }
    }

    private let state = Mutex(State())

    /// A frame comes to the queue. False when the pipeline is stopping and the frame should go no further.
    func captured(_ timestamp: UInt64) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.counts.captured += 1
            state.queued.append(timestamp)
            return true
        }
    }

    /// A frame leaves the queue for the encoder: those before it that never left were dropped.
    func left(_ timestamp: UInt64) {
        state.withLock { state in
            while let first = state.queued.first {
                state.queued.removeFirst()
                if first == timestamp { break }
                state.drop()
            }
        }
    }

    func encoded(bytes: Int, isKeyframe: Bool) {
        state.withLock { state in
            state.counts.encoded += 1
            state.counts.bytes += bytes
            state.counts.keyframes += isKeyframe ? 1 : 0
            state.lastIsKeyframe = isKeyframe
            if state.underWay == 0 { state.onIdle?.signal() }
        }
    }

    func set(width: Int, height: Int) {
        state.withLock {
            $0.counts.width = width
            $0.counts.height = height
        }
    }

    func set(bitrate: Bitrate) {
        state.withLock { $0.counts.targetBitsPerSecond = bitrate.bitsPerSecond }
    }

    var lastIsKeyframe: Bool { state.withLock { $0.lastIsKeyframe } }

    /// Takes no more frames and waits until those under way have been encoded.
    func close(waiting limit: DispatchTimeInterval) {
        let semaphore = DispatchSemaphore(value: 0)
        let isIdle = state.withLock { state in
            state.isClosed = true
            state.onIdle = semaphore
            return state.underWay == 0
        }
        if !isIdle { _ = semaphore.wait(timeout: .now() + limit) }
    }

    /// No thread runs any more: what has not been encoded never will be.
    func settle() {
        state.withLock { state in
            state.counts.droppedBeforeEncoder += state.underWay
            state.queued.removeAll()
            state.onIdle = nil
        }
    }

    var statistics: MediaStatistics.VideoEncoder {
        state.withLock { state in
            var counts = state.counts
            counts.inFlight = state.underWay
            counts.encoderKeepsUp = state.lastDrop.map { GStreamer.now.seconds(since: $0) > Self.memory } ?? true
            return counts
        }
    }
}

/// VP8 behind its capture queue.
enum VP8EncoderNode: NodeType {
    static let kind = NodeKind.vp8Encoder

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try VideoEncoderNode.plan(request, codec: .vp8)
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        VideoEncoderNode.activate(instance, codec: .vp8)
    }
}

/// H.264 behind its capture queue.
enum H264EncoderNode: NodeType {
    static let kind = NodeKind.h264Encoder

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try VideoEncoderNode.plan(request, codec: .h264)
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        VideoEncoderNode.activate(instance, codec: .h264)
    }
}

extension MediaFormat {
    /// What an encoder of these pictures is given when nobody chose a bitrate; nil when their size is not known.
    func defaultBitrate(_ codec: VideoCodec) -> Bitrate? {
        guard let width, let height else { return nil }
        return VideoBitrate.default(
            width: width, height: height, framesPerSecond: framesPerSecond ?? 30, codec: codec)
    }
}
