import Dispatch
import MediaGraph
import MediaNodes
import TestSupport

/// The output of a graph at a `frames` node named "view" and a `sound` node named "ear".
final class Seen: Sendable {
    struct Picture: Sendable {
        let time: MediaTime
        let width: Int
        let height: Int
        /// Mean of the luma below the bar code, 16 black to 235 white.
        let brightness: Double
        let barCode: UInt32?
    }

    let pictures = Collected<Picture>()
    let sound = Collected<AudioChunk>()
    let events = Collected<MediaEvent>()

    /// The functions for the nodes of a graph.
    func bindings(of graph: MediaGraph) -> NodeBindings {
        var bindings = NodeBindings()
        if graph.node("view") != nil { bindings.frames["view"] = { [pictures] in pictures.append(Picture($0)) } }
        if graph.node("ear") != nil { bindings.audio["ear"] = { [sound] in sound.append($0) } }
        bindings.events = { [events] in events.append($0) }
        return bindings
    }

    var failures: [MediaError] {
        events.all.compactMap { if case .failed(let error) = $0 { error } else { nil } }
    }

    /// Of the devices of sources, each with the code of its cause.
    var deviceEvents: [String] {
        events.all.compactMap { event in
            switch event {
            case .deviceWaiting(_, let cause): "waiting \(cause.code)"
            case .deviceLost(_, let cause): "lost \(cause.code)"
            case .deviceReturned: "returned"
            case .deviceFailedOver(_, let device): "failed over to \(device)"
            case .failed(let error): "failed \(error.code)"
            default: nil
            }
        }
    }

    var hasEnded: Bool { events.all.contains { if case .ended = $0 { true } else { false } } }

    /// Of optional parts.
    var partFailures: [MediaError] {
        events.all.compactMap { if case .partFailed(let error, _) = $0 { error } else { nil } }
    }

    /// The times at which frames turned bright, on the capture clock.
    var flashes: [MediaTime] {
        let all = pictures.all
        return zip(all, all.dropFirst()).filter { $0.brightness < 200 && $1.brightness > 200 }.map { $1.time }
    }

    /// The times at which audio turned loud, to the sample.
    var beeps: [MediaTime] {
        var found: [MediaTime] = []
        var quietSince: UInt64?
        for chunk in sound.all {
            for moment in 0..<chunk.samples.count / 2 {
                let time = chunk.captureTime.nanoseconds + UInt64(moment) * 1_000_000_000 / UInt64(chunk.sampleRate)
                guard abs(Int(chunk.samples[moment * 2])) > 4000 else { continue }
                // A beep crosses zero; half a second without audio is a pause.
                if let quiet = quietSince, time > quiet + 500_000_000 { found.append(MediaTime(nanoseconds: time)) }
                quietSince = time
            }
            if quietSince == nil { quietSince = chunk.captureTime.nanoseconds }
        }
        return found
    }

    /// The distance of each flash from the nearest beep, in milliseconds.
    var distances: [Double] {
        let beeps = beeps
        return flashes.compactMap { flash in
            beeps.map { $0.milliseconds(since: flash) }.min { abs($0) < abs($1) }
        }.filter { abs($0) < 400 }
    }
}

extension Seen.Picture {
    init(_ frame: VideoFrame) {
        time = frame.captureTime
        width = frame.width
        height = frame.height
        barCode = frame.barCode
        brightness = frame.withPlane(.luma) { bytes, stride in
            var sum = 0
            let row = frame.height * 3 / 4 * stride
            for column in 0..<frame.width {
                sum += Int(bytes.unsafeLoad(fromByteOffset: row + column, as: UInt8.self))
            }
            return Double(sum) / Double(frame.width)
        }
    }
}

extension MediaPipeline {
    /// A pipeline with its output.
    convenience init(_ graph: MediaGraph, seen: Seen) async throws(MediaError) {
        try await self.init(graph, bindings: seen.bindings(of: graph))
    }
}

/// Starts a graph. Returns the message of its failure.
func failure(of graph: MediaGraph) async -> MediaError? {
    do throws(MediaError) {
        let pipeline = try await MediaPipeline(graph, bindings: Seen().bindings(of: graph))
        try await pipeline.begin()
        await pipeline.stop()
        return nil
    } catch {
        return error
    }
}

/// Blocks callers until it is opened.
final class Gate: Sendable {
    private let isOpen = DispatchSemaphore(value: 0)

    func wait() {
        isOpen.wait()
        isOpen.signal()
    }

    func open() {
        isOpen.signal()
    }
}
