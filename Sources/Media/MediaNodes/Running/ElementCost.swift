import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// The time of a codec for one frame on this machine, for the expected latency of a plan.
///
/// Measured on request, with a moving test pattern at its own rate through the element as it will be used: tables are
/// wrong on other machines, and frames in a fast sequence take less time than frames at their rate.
enum ElementCost {
    private static let frames = 12
    /// The first frame is a keyframe and opens the codec.
    private static let skipped = 3
    private static let limit = DispatchTimeInterval.seconds(3)
    /// By factory and size.
    private static let known = Mutex<[String: Double]>([:])

    /// Seconds from input to output of the element. 0 for an element that cannot be measured this way.
    static func measured(_ element: ElementPlan, _ format: MediaFormat) -> Double {
        guard let width = format.width, let height = format.height else { return 0 }
        let key = "\(element.factory) \(width)x\(height)"
        if let known = known.withLock({ $0[key] }) { return known }
        let seconds = (try? measure(element, format, width, height)) ?? 0
        known.withLock { $0[key] = seconds }
        return seconds
    }

    /// Encoders by the codec of their decoders, because frames must be encoded before they can be decoded.
    private static let encoders: [String: (factory: String, properties: [String: SettingValue])] = [
        "vp8": ("vp8enc", ["deadline": 1, "cpu-used": -8, "target-bitrate": 1_000_000]),
        "vp9": ("vp9enc", ["deadline": 1, "cpu-used": 8]),
        "h264": ("x264enc", ["tune": "zerolatency", "speed-preset": "ultrafast", "bitrate": 1000]),
        "mjpeg": ("jpegenc", [:]),
    ]

    private static func measure(
        _ plan: ElementPlan, _ format: MediaFormat, _ width: Int, _ height: Int
    ) throws(MediaError) -> Double {
        let isDone = DispatchSemaphore(value: 0)
        let pipeline = Pipeline { message in
            switch message {
            case .endOfStream, .error: isDone.signal()
            case .warning, .missingPlugin, .latencyChanged, .stateRequested: break
            }
        }
        let rate = min(max(format.framesPerSecond ?? 30, 10), 60)
        var chain = [
            try Element(
                "videotestsrc",
                [
                    "is-live": true, "pattern": "smpte75", "horizontal-speed": 2, "num-buffers": .integer(frames),
                ]),
            try Element.filter(
                RawFormat.video(.rawVideo(width: width, height: height, framesPerSecond: rate))),
        ]
        if format.kind == .encodedVideo {
            guard let encoder = encoders[format.encoding] else { return 0 }
            chain.append(try Element(encoder.factory, encoder.properties))
            if format.encoding == "h264" { chain.append(try Element("h264parse")) }
        }
        let element = try Element(plan.factory, plan.properties)
        chain.append(element)
        chain.append(try Element("fakesink", ["sync": false, "async": false]))
        for part in chain { pipeline.add(part) }
        for (from, to) in zip(chain, chain.dropFirst()) { try from.link(to) }
        let times = PassageTimes()
        let count = FlowCount()
        element.sink.watchBuffers { buffer in times.entered(buffer.runningTime) }
        element.source.watchBuffers { buffer in
            count.add(bytes: 0)
            if count.count.frames > skipped { times.left(buffer.runningTime, captured: buffer.time) }
        }
        guard pipeline.play() else { return 0 }
        _ = isDone.wait(timeout: .now() + limit)
        pipeline.stop()
        return times.medians.inNode ?? 0
    }
}
