import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// The video encoders that nodes of this program use, and how fast this machine runs them.
package struct KnownEncoder: Sendable, Hashable {
    /// The name of the codec in formats, such as `h264`.
    package let codec: String
    /// The GStreamer element.
    package let factory: String
    package let isHardware: Bool

    package init(codec: String, factory: String, isHardware: Bool) {
        (self.codec, self.factory, self.isHardware) = (codec, factory, isHardware)
    }

    /// All of them, installed or not. In the order in which nodes prefer them, codec by codec.
    package static let all = EncodedVideo.all.flatMap { codec in
        codec.elements.map { KnownEncoder(codec: codec.name, factory: $0.factory, isHardware: $0.isHardware) }
    }

    /// Encodes a moving test pattern as fast as the machine can, with the properties of an encoder node. Blocks for about
    /// `seconds`, or for as long as a driver that hangs.
    ///
    /// Frames come from another thread, as from a camera. On a machine with one core the pattern takes a part of its time.
    ///
    /// - Parameter enough: ends the measurement after so many frames behind the first.
    /// - Returns: frames per second. Nil if the encoder delivers fewer than two frames in that time.
    /// - Throws: `element.missing`, `element.property`, `element.failed`.
    package func framesPerSecond(
        width: Int, height: Int, seconds: Double, frames enough: Int = .max
    ) throws(MediaError) -> Double? {
        guard let codec = EncodedVideo.all.first(where: { $0.name == self.codec }),
            let row = codec.elements.first(where: { $0.factory == factory })
        else { return nil }
        let hasEnded = DispatchSemaphore(value: 0)
        let pipeline = Pipeline { message in
            if case .error = message { hasEnded.signal() }
        }
        let size = MediaFormat.rawVideo(width: width, height: height, framesPerSecond: Double(Self.frameRate))
        let pixels = "video/x-raw,format=\(row.pixelFormats.first ?? "I420")" + size.sizeAndRate
        let encoder = try encoder(row, pixels: width * height, codec.defaultBitrate(for: size))
        let chain = [
            try Element("videotestsrc", ["pattern": "smpte75", "horizontal-speed": 2]), try Element.filter(pixels),
            try Element("queue", ["max-size-buffers": 3, "max-size-bytes": 0, "max-size-time": 0]), encoder,
            try Element("fakesink", ["sync": false, "async": false]),
        ]
        for part in chain { pipeline.add(part) }
        for (from, to) in zip(chain, chain.dropFirst()) { try from.link(to) }
        let passed = Mutex<(first: MediaTime?, last: MediaTime?, after: Int)>((nil, nil, 0))
        encoder.source.watchBuffers { _ in
            let now = GStreamer.now
            passed.withLock { passed in
                // The first frame opens the codec.
                if passed.first == nil { passed.first = now } else { passed.after += 1 }
                passed.last = now
                if passed.after == enough { hasEnded.signal() }
            }
        }
        guard pipeline.play() else { return nil }
        _ = hasEnded.wait(timeout: .now() + seconds)
        pipeline.stop()
        let (first, last, frames) = passed.withLock { $0 }
        guard let first, let last, frames > 0 else { return nil }
        return Double(frames) / max(last.seconds(since: first), 0.000_001)
    }

    private static let frameRate = 30
    private static let keyframeInterval = 3000

    private func encoder(_ row: VideoEncoderElement, pixels: Int, _ bitrate: Bitrate?) throws(MediaError) -> Element {
        var properties = row.properties(keyframeInterval: Self.keyframeInterval)
        if properties["threads"] != nil {
            properties["threads"] = .integer(VideoEncoderNode.threads(forPixels: pixels))
        }
        if let bitrate {
            let rate = row.rateProperty(bitrate.bitsPerSecond, keyframeInterval: Self.keyframeInterval)
            properties[rate.name] = rate.value
        }
        guard isHardware else { return try Element(factory, properties) }
        // Drivers differ in the properties that they accept.
        let element = try Element(factory)
        for (name, value) in properties { _ = element.trySet(name, value) }
        return element
    }
}

/// The GStreamer release of this process.
package enum GStreamerRelease {
    /// Loads GStreamer, which reads all its plugins after one was installed: that takes some seconds.
    package static var version: String {
        GStreamer.load()
        return GStreamer.version
    }
}
