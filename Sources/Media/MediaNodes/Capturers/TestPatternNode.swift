import GStreamerKit
import Glibc
package import MediaGraph

/// Scrolling colour bars with a bar-coded frame number, and a tone. In the first tenth of each second the bars flash
/// and the tone beeps, so that their offset can be measured anywhere downstream.
enum TestPatternNode: NodeType {
    /// The length of an audio buffer, in milliseconds.
    private static let piece = 20

    static let kind = NodeKind(
        "test-pattern", .capturer,
        "Moving bars with a bar-coded frame number, and a tone; flash and beep mark the same tenth of each second",
        outputs: [
            Port("video", [.rawVideo], encodings: ["I420"]), Port("audio", [.rawAudio], isRequired: false),
        ],
        settings: [
            SettingContract("width", .integer(64...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(64...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Frame rate"),
            SettingContract(
                "frames", .integer(0...Int(Int32.max)), default: 0, unit: "frames", "Number of frames; 0 is unlimited"
            ),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let frames = request.integer("frames")
        var plan = NodePlan(request.node)
        // Scrolling moves the whole frame, which gives codecs real work.
        plan.add(
            "videotestsrc", as: "picture",
            [
                "is-live": true, "pattern": "smpte75", "horizontal-speed": 2,
                "num-buffers": .integer(frames == 0 ? -1 : frames),
            ])
        let format = MediaFormat.rawVideo(
            width: request.integer("width"), height: request.integer("height"), framesPerSecond: request.number("fps"))
        plan.appendFilter(RawFormat.video(format), as: "format")
        plan.setOutput("video", format)
        if request.usedOutputs.contains("audio") {
            plan.add(
                "audiotestsrc", as: "tone",
                ["is-live": true, "wave": "silence", "samplesperbuffer": .integer(Self.piece * 48)])
            plan.appendFilter(RawFormat.audio, as: "sound-format")
            plan.setOutput("audio", .rawAudio)
            // The tone is generated: a buffer leaves at its beginning, though its element announces its end.
            plan.allowances["audio"] = Double(Self.piece) / 1000
        }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let format = instance.plan.formats["video"]
        let width = format?.width ?? 0
        let height = format?.height ?? 0
        let counter = Counter()
        let output = instance.element("format").source
        output.watchBuffers { buffer in
            let number = UInt32(truncatingIfNeeded: counter.next() - 1)
            let isFlash = buffer.timestamp.map(Beat.isOn) ?? false
            buffer.writeLuma(width: width, height: height) { luma, stride in
                if isFlash { Beat.whiten(&luma) }
                BarCode.draw(number, into: &luma, stride: stride, width: width, height: height)
            }
        }
        if instance.has("tone") { activateTone(instance, endingWith: output) }
        instance.awaitFirstBuffer(at: output)
        return nil
    }

    private static func activateTone(_ instance: NodeInstance, endingWith picture: Pad) {
        let source = instance.element("tone")
        picture.onEndOfStream { source.sendEndOfStream() }
        instance.element("sound-format").source.watchBuffers { buffer in
            guard let time = buffer.timestamp else { return }
            buffer.write { samples in Tone.write(into: &samples, at: time) }
        }
    }
}

/// The tenth of each second of running time with flash and beep.
private enum Beat {
    static let nanoseconds: UInt64 = 100_000_000
    /// Four white pixels.
    private static let white: UInt32 = 0xebeb_ebeb

    static func isOn(at time: UInt64) -> Bool { time % 1_000_000_000 < nanoseconds }

    static func whiten(_ luma: inout MutableRawSpan) {
        // GStreamer's rows of luma have a multiple of 4 bytes.
        for offset in stride(from: 0, to: luma.byteCount - 3, by: 4) {
            luma.storeBytes(of: white, toByteOffset: offset, as: UInt32.self)
        }
    }
}

/// A quiet 440 Hz tone, and for the first tenth of every second of running time a louder 880 Hz beep.
private enum Tone {
    private static let rate = 48_000
    /// One second of the tone, in which both frequencies have whole periods.
    private static let second = (0..<rate).map { index in
        let (hertz, amplitude) = index < rate / 10 ? (880, 12_000.0) : (440, 1_600.0)
        return Int16(amplitude * sin(2 * .pi * Double(index * hertz % rate) / Double(rate)))
    }

    static func write(into samples: inout MutableRawSpan, at time: UInt64) {
        var index = Int(time / 1000 * UInt64(rate) / 1_000_000 % UInt64(rate))
        for offset in stride(from: 0, to: samples.byteCount - 3, by: 4) {
            samples.storeBytes(of: second[index], toByteOffset: offset, as: Int16.self)
            samples.storeBytes(of: second[index], toByteOffset: offset + 2, as: Int16.self)
            index = index + 1 == rate ? 0 : index + 1
        }
    }
}

/// Moving colour bars with a bar-coded frame number, and a tone.
public struct TestPattern: MediaNode {
    public var handle: NodeHandle

    /// A test pattern. Its size is in pixels.
    ///
    /// - Parameter frames: the number of frames after which it ends; 0 for no end.
    public init(width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil, frames: Int? = nil) {
        handle = NodeHandle(
            TestPatternNode.kind, ["width": width, "height": height, "fps": framesPerSecond, "frames": frames])
    }

    /// Moving bars with a bar-coded frame number.
    public var video: NodeOutput { output(named: "video") }
    /// A tone in time with the bars.
    public var audio: NodeOutput { output(named: "audio") }
}

extension Node {
    /// Moving colour bars with a bar-coded frame number, and a tone. Ends after `frames` frames unless that is 0.
    package static func testPattern(
        _ name: String = "test-pattern", width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil,
        frames: Int? = nil
    ) -> Node {
        Node(
            TestPatternNode.kind, name,
            ["width": width, "height": height, "fps": framesPerSecond, "frames": frames])
    }
}
