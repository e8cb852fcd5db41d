import GStreamerKit
import MediaGraph
import Synchronization

/// Scrolling colour bars with a bar-coded frame number, and a tone with a beep in each second.
final class TestPatternNode: RunningNode {
    let name: String

    private init(_ name: String) {
        self.name = name
    }

    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let running = TestPatternNode(node.name)
        let audio = assembly.isUsed("audio", of: node) ? try buildTone(node, in: assembly) : nil
        try buildPicture(node, in: assembly, tone: audio)
        assembly.reporter.await(node.name)
        assembly.register(running)
    }

    private static func buildPicture(
        _ node: ResolvedNode, in assembly: Assembly, tone: Element?
    ) throws(MediaError) {
        guard let width = node.integer("width"), let height = node.integer("height"), let fps = node.number("fps"),
            let frames = node.integer("frames")
        else { preconditionFailure("the test pattern's settings have defaults") }
        // Scrolling keeps the whole picture moving, so that a codec has real work.
        let source = try assembly.element(
            "videotestsrc", of: node,
            [
                "is-live": true, "pattern": "smpte75", "horizontal-speed": 2,
                "num-buffers": .integer(frames == 0 ? -1 : frames),
            ])
        let filter = try assembly.filter(
            "\(Assembly.rawVideo),width=\(width),height=\(height),framerate=\(fraction(fps))", of: node)
        try source.link(filter)
        let reporter = assembly.reporter
        let name = node.name
        let counter = FrameNumber()
        filter.source.onBuffer { buffer in
            let number = counter.next()
            buffer.writeLuma(width: width, height: height) { luma, stride in
                BarCode.draw(number, into: &luma, stride: stride, width: width, height: height)
            }
            if number == 0 { reporter.isReady(name) }
            return .pass
        }
        if let tone {
            // The tone ends with the picture.
            filter.source.onEvent { event in
                if case .endOfStream = event { tone.sendEndOfStream() }
                return .pass
            }
        }
        assembly.provide("video", of: node, from: filter)
    }

    private static func buildTone(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) -> Element {
        let source = try assembly.element(
            "audiotestsrc", of: node, ["is-live": true, "wave": "silence", "samplesperbuffer": 960])
        let filter = try assembly.filter(Assembly.rawAudio, of: node)
        try source.link(filter)
        let tone = Tone()
        filter.source.onBuffer { buffer in
            guard let time = buffer.timestamp else { return .pass }
            buffer.write { samples in tone.write(into: &samples, at: time) }
            return .pass
        }
        assembly.provide("audio", of: node, from: filter)
        return source
    }
}

/// Numbers frames from 0, wrapping after 2^32.
private final class FrameNumber: Sendable {
    private let value = Atomic<UInt32>(0)

    func next() -> UInt32 {
        value.wrappingAdd(1, ordering: .relaxed).oldValue
    }
}

/// A quiet 440 Hz tone, and for the first tenth of every second of running time a louder 880 Hz beep.
private struct Tone: Sendable {
    private static let rate = 48_000
    /// One second of the tone: both frequencies fit a whole number of times.
    private let second: [Int16]

    init() {
        var samples: [Int16] = []
        samples.reserveCapacity(Self.rate)
        for index in 0..<Self.rate {
            let isBeep = index < Self.rate / 10
            let (sine, amplitude) = isBeep ? (880, 12_000.0) : (440, 1_600.0)
            samples.append(Int16(amplitude * Self.sine(Double(index * sine % Self.rate) / Double(Self.rate))))
        }
        second = samples
    }

    /// Sine of a turn between 0 and 1 (Bhaskara's approximation, off by 0.2 % at most: good enough to be heard).
    private static func sine(_ turn: Double) -> Double {
        let half = turn < 0.5 ? turn * 2 : (turn - 0.5) * 2
        let product = half * (1 - half)
        let value = 16 * product / (5 - 4 * product)
        return turn < 0.5 ? value : -value
    }

    func write(into samples: inout MutableRawSpan, at time: UInt64) {
        var index = Int(time / 1000 * UInt64(Self.rate) / 1_000_000 % UInt64(Self.rate))
        for offset in stride(from: 0, to: samples.byteCount - 3, by: 4) {
            samples.storeBytes(of: second[index], toByteOffset: offset, as: Int16.self)
            samples.storeBytes(of: second[index], toByteOffset: offset + 2, as: Int16.self)
            index = index + 1 == Self.rate ? 0 : index + 1
        }
    }
}

/// A frame rate as GStreamer writes it; 29.97 and its kin get the denominator that television uses.
func fraction(_ framesPerSecond: Double) -> String {
    if framesPerSecond == framesPerSecond.rounded() { return "\(Int(framesPerSecond))/1" }
    let television = (framesPerSecond * 1001 / 1000).rounded()
    if abs(television * 1000 / 1001 - framesPerSecond) < 0.01 { return "\(Int(television) * 1000)/1001" }
    return "\(Int((framesPerSecond * 1000).rounded()))/1000"
}
