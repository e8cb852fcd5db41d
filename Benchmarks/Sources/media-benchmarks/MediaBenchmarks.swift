import Dispatch
import Glibc
import MediaGraph
import MediaNodes

/// Runs one graph in a process of its own, for `Benchmarks/run media` to compare with gst-launch.
///
///     media-benchmarks run SHAPE FRAMES CLIP [--pipe] [--known-clip]   until its end
///     media-benchmarks line SHAPE FRAMES CLIP [--pipe]                 gst-launch's arguments for it, one to a line
///     media-benchmarks frames WAY SECONDS [PLUGIN]                     raw frames from socket, capturer, library, push
///
/// Links nothing but the Media layer, and reads its arguments itself: every instruction of the process is counted.
@main
enum MediaBenchmarks {
    /// Not async: the main thread of such a program ends in a call that Debian's valgrind crashes on (it writes into the
    /// read-only signal mask that libdispatch suspends the thread with).
    static func main() {
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            await perform(Array(CommandLine.arguments.dropFirst()))
            isDone.signal()
        }
        isDone.wait()
    }

    private static func perform(_ arguments: [String]) async {
        do {
            switch arguments.first {
            case "run": try await run(graph(arguments))
            case "line": try say(graph(arguments).line().joined(separator: "\n"))
            case "frames":
                guard arguments.count >= 3, let way = FrameTransfer.Way(rawValue: arguments[1]),
                    let seconds = Int(arguments[2])
                else { throw BenchmarkError("Say socket, capturer, library or push, and for how many seconds.") }
                try await FrameTransfer.run(
                    way, seconds: seconds, plugin: arguments.count > 3 ? arguments[3] : nil)
            case "feeder": try FrameTransfer.feed()
            default: throw BenchmarkError("Say run, line or frames.")
            }
        } catch {
            fail("\((error as? MediaError)?.message ?? "\(error)")")
        }
    }

    private static func graph(_ arguments: [String]) throws -> BenchmarkGraph {
        guard arguments.count >= 4, let shape = BenchmarkGraph.Shape(rawValue: arguments[1]),
            let frames = Int(arguments[2])
        else {
            let shapes = BenchmarkGraph.Shape.allCases.map(\.rawValue).joined(separator: ", ")
            throw BenchmarkError("Say which graph (\(shapes)), how many frames, and the path of the clip.")
        }
        return BenchmarkGraph(
            shape: shape, frames: frames, clip: arguments[3],
            end: arguments.contains("--pipe") ? .standardOutput : .nowhere,
            isClipKnown: arguments.contains("--known-clip"))
    }

    private static func run(_ graph: BenchmarkGraph) async throws {
        let ending = AsyncStream<MediaError?>.makeStream()
        var bindings = NodeBindings()
        bindings.events = { event in
            switch event {
            case .ended: ending.continuation.yield(nil)
            case .failed(let error): ending.continuation.yield(error)
            default: break
            }
        }
        let pipeline = try await MediaPipeline(graph.plan(), bindings: bindings, registry: BenchmarkGraph.registry)
        try await pipeline.start()
        var endings = ending.stream.makeAsyncIterator()
        if let failure = await endings.next() ?? nil { throw failure }
        await pipeline.stop()
    }

    static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        write(STDOUT_FILENO, line, line.count)
    }

    private static func fail(_ text: String) -> Never {
        let line = Array("\(text)\n".utf8)
        write(STDERR_FILENO, line, line.count)
        exit(EXIT_FAILURE)
    }
}

/// The failure, as one sentence.
struct BenchmarkError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
