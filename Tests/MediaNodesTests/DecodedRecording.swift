import Foundation
import GStreamerKit
import MediaGraph
import Synchronization

/// A recording of the test pattern, decoded to its end as fast as possible.
struct DecodedRecording: Sendable {
    /// The frame numbers, in the order of the recording; nil for an unreadable one.
    private(set) var numbers: [UInt32?] = []
    /// The time of each frame in the recording, in seconds.
    private(set) var times: [Double] = []
    /// The seconds of the recording at which beeps begin.
    private(set) var beeps: [Double] = []
    private(set) var secondsOfSound = 0.0
    private(set) var problem: String?
    /// The second of the recording at which its audio begins.
    private(set) var firstSound: Double?

    fileprivate init() {}

    init(_ path: String) {
        let reader = Reader()
        reader.read(path)
        self = reader.result
    }

    /// The delay of each beep after its frame, in milliseconds.
    func soundAfterPicture(framesPerSecond: Int) -> [Double] {
        let frames = zip(numbers, times).compactMap { number, time in number.map { (number: $0, seconds: time) } }
        return delays(of: beeps, after: frames, framesPerSecond: framesPerSecond)
    }

    /// Whether the numbers count up from the first, with no more gaps than frames were dropped before the
    /// encoder. One in thirty may be unreadable: AV1 at its fastest sometimes leaves a block unchanged.
    func isContinuous(but dropped: Int) -> Bool {
        let readable = numbers.compactMap { $0 }
        guard let first = readable.first, let last = readable.last else { return false }
        return zip(readable, readable.dropFirst()).allSatisfy { $0 < $1 }
            && Int(last - first) < numbers.count + dropped && readable.count >= numbers.count - numbers.count / 30
    }

    fileprivate mutating func add(picture number: UInt32?, at time: Double) {
        numbers.append(number)
        times.append(time)
    }

    fileprivate mutating func add(sound samples: [Int16], at time: Double, _ lastLoud: inout Double) {
        if firstSound == nil { firstSound = time }
        // Every eighth sample is enough: a sixth of a millisecond.
        for index in stride(from: 0, to: samples.count, by: 16) where abs(Int(samples[index])) > 6000 {
            let moment = time + Double(index / 2) / 48_000
            // A beep that already sounds when the recording begins does not begin there.
            if moment - lastLoud > 0.3, moment - (firstSound ?? 0) > 0.15 { beeps.append(moment) }
            lastLoud = moment
        }
        secondsOfSound += Double(samples.count / 2) / 48_000
    }

    fileprivate mutating func fail(_ problem: String) { self.problem = problem }
}

/// The delay of each beep of the test pattern after its frame, in milliseconds. The pattern beeps with each full second
/// of frames. The time of a dropped frame follows from the nearest one.
func delays(
    of beeps: [Double], after frames: [(number: UInt32, seconds: Double)], framesPerSecond: Int
) -> [Double] {
    let rate = Double(framesPerSecond)
    return beeps.compactMap { beep in
        guard let nearest = frames.min(by: { abs($0.seconds - beep) < abs($1.seconds - beep) }),
            abs(nearest.seconds - beep) < 1
        else { return nil }
        let number = Double(nearest.number) + (beep - nearest.seconds) * rate
        return number.remainder(dividingBy: rate) / rate * 1000
    }.filter { abs($0) < 450 }
}

private final class Reader: Sendable {
    private struct State {
        var recording = DecodedRecording()
        var lastLoud = -1.0
    }

    private let state = Mutex(State())
    private let isOver = DispatchSemaphore(value: 0)

    var result: DecodedRecording { state.withLock { $0.recording } }

    func read(_ path: String) {
        let pipeline = Pipeline { message in
            switch message {
            case .endOfStream: self.isOver.signal()
            case .error(let failure): self.fail(failure.message + " " + failure.detail)
            case .warning, .missingPlugin, .latencyChanged, .stateRequested: break
            }
        }
        guard let source = try? Element("uridecodebin", ["uri": .text(URL(fileURLWithPath: path).absoluteString)])
        else { return }
        pipeline.add(source)
        source.onPadAdded { pad in
            do {
                try self.follow(pad, in: pipeline)
            } catch {
                self.fail("\(error)")
            }
        }
        _ = pipeline.play()
        // A busy machine decodes slowly: only a reader that makes no progress has failed.
        var progress = -1.0
        while isOver.wait(timeout: .now() + 20) == .timedOut {
            let next = state.withLock { Double($0.recording.times.count) + $0.recording.secondsOfSound }
            guard next > progress else {
                fail("it did not end")
                break
            }
            progress = next
        }
        pipeline.stop()
    }

    private func fail(_ problem: String) {
        state.withLock { $0.recording.fail(problem) }
        isOver.signal()
    }

    private func follow(_ pad: Pad, in pipeline: Pipeline) throws {
        let isVideo = pad.caps?.structures.first?.name.hasPrefix("video") ?? false
        let convert = try Element(isVideo ? "videoconvert" : "audioconvert")
        let resample = try Element(isVideo ? "identity" : "audioresample")
        let format = try Element.filter(
            isVideo ? "video/x-raw,format=I420" : "audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=2")
        let sink = try Element("fakesink", ["sync": false, "async": false])
        for element in [convert, resample, format, sink] { pipeline.add(element) }
        for (from, to) in [(convert, resample), (resample, format), (format, sink)] { try from.link(to) }
        sink.sink.onBuffer { buffer in
            let time = Double(buffer.runningTime ?? 0) / 1e9
            if isVideo {
                let number = buffer.videoFormat.flatMap { format in
                    buffer.keep(as: format).withPlane(.luma) {
                        BarCode.read($0, stride: $1, width: format.width, height: format.height)
                    }
                }
                self.state.withLock { $0.recording.add(picture: number, at: time) }
            } else {
                let samples = buffer.read { bytes in
                    bytes.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }
                }
                self.state.withLock { $0.recording.add(sound: samples ?? [], at: time, &$0.lastLoud) }
            }
            return .pass
        }
        for element in [sink, format, resample, convert] { element.followPipeline() }
        _ = pad.link(convert.sink)
    }
}
