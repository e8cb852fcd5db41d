import Dispatch
import FrameSocket
import Glibc
import MediaGraph
import MediaNodes
import PluginLoader
import Synchronization

/// The same raw frames, 1080p at 60 frames/s, from another process over the frame socket, from a capturer of this program,
/// from a capturer of a shared library, and by a push.
///
/// All draw the same: a bar code and one row. Measures the time from the end of the drawing until the frame reaches the
/// graph's end, and the processor time per frame of this process and of the other.
enum FrameTransfer {
    static let (width, height, rate) = (1920, 1080, 60)
    /// Frames before the measurement begins.
    private static let warmUp = 60

    enum Way: String, CaseIterable {
        /// From another process, over the socket and shared memory.
        case socket
        /// Drawn by a capturer of this program.
        case capturer
        /// Drawn by the same capturer, out of a shared library.
        case library
        /// Pushed as arrays of bytes, which are copied once.
        case push
    }

    // MARK: The other process

    /// Feeds until the graph ends.
    static func feed() throws {
        let feed = try FrameFeed.fromEnvironment(name: "benchmark")
        var number: UInt32 = 0
        var due = FrameFeed.now
        while try !feed.isStopped {
            due += UInt64(1_000_000_000 / rate)
            sleep(until: due)
            try feed.send { picture in draw(number, into: &picture) }
            number += 1
        }
    }

    private static func draw(_ number: UInt32, into picture: inout MutableRawSpan) {
        BarCode.draw(number, into: &picture, stride: width, width: width, height: height)
        let row = height / 2 + Int(number) % (height / 4)
        for column in 0..<width {
            picture.storeBytes(
                of: UInt8(truncatingIfNeeded: number), toByteOffset: row * width + column, as: UInt8.self)
        }
    }

    private static func sleep(until time: UInt64) {
        var target = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nil)
    }

    // MARK: This process

    private struct Seen {
        var count = 0
        var last: UInt32?
        var lost = 0
        var unread = 0
        var latencies: [Double] = []
    }

    /// `plugin` is the folder of the package that brings the capturer out of a shared library.
    static func run(_ way: Way, seconds: Int, plugin: String?) async throws {
        var registry = NodeRegistry.builtIn
        let source: Node
        switch way {
        case .socket:
            source = Node.process(
                "source", command: "'\(CommandLine.arguments[0])' feeder", width: width, height: height,
                framesPerSecond: Double(rate))
        case .push:
            source = Node.bypass("source", width: width, height: height, framesPerSecond: Double(rate))
        case .capturer:
            registry = try registry.adding(.capturer(DrawnPictures.init))
            source = DrawnPictures.node(name: "source")
        case .library:
            guard let plugin else { throw BenchmarkError("Say where the plugin is.") }
            registry = try registry.adding(try PluginLoader.load(plugin))
            source = Node(DrawnPictures.name, name: "source")
        }
        let graph = MediaGraph {
            Chain {
                source
                Node.frames("view")
            }
        }
        let seen = Mutex(Seen())
        var bindings = NodeBindings()
        bindings.frames["view"] = { frame in
            let latency = MediaTime.now.milliseconds(since: frame.captureTime)
            let number = frame.barCode
            seen.withLock { seen in
                seen.count += 1
                if seen.count > warmUp { seen.latencies.append(latency) }
                if let number, let last = seen.last { seen.lost += Int(number) - Int(last) - 1 }
                if number == nil { seen.unread += 1 }
                seen.last = number ?? seen.last
            }
        }
        let pipeline = try await MediaPipeline(graph, bindings: bindings, registry: registry)
        try await pipeline.start()
        let pushing = way == .push ? Pusher(pipeline.frameInput("source")) : nil
        while seen.withLock({ $0.count }) < warmUp { try await Task.sleep(for: .milliseconds(10)) }
        let (from, before) = (seen.withLock { $0.count }, Processor.ofThis)
        let otherBefore = Processor.ofChildren
        try await Task.sleep(for: .seconds(seconds))
        let (to, after) = (seen.withLock { $0.count }, Processor.ofThis)
        let otherAfter = Processor.ofChildren
        pushing?.stop()
        await pipeline.stop()
        let result = seen.withLock { $0 }
        guard result.unread == 0, to > from else { throw BenchmarkError("\(result.unread) frames had no bar code.") }
        let frames = Double(to - from)
        let latencies = result.latencies.sorted()
        MediaBenchmarks.say(
            "{\"way\":\"\(way.rawValue)\",\"frames\":\(to - from),\"lost\":\(result.lost),"
                + "\"graphMicroseconds\":\((after - before) / frames),"
                + "\"otherMicroseconds\":\((otherAfter - otherBefore) / frames),"
                + "\"latencyMedian\":\(latencies[latencies.count / 2]),"
                + "\"latency95\":\(latencies[latencies.count * 95 / 100]),"
                + "\"latencyMost\":\(latencies.last ?? 0)}")
    }

    /// Pushes what the other process would send, on a thread of its own.
    private final class Pusher: Sendable {
        private let isStopped = Atomic(false)

        init(_ input: FrameInput?) {
            let queue = DispatchQueue(label: "pusher")
            queue.async { [self] in
                var luma = [UInt8](repeating: 0, count: width * height)
                let chroma = [UInt8](repeating: 0, count: width * height / 4)
                var number: UInt32 = 0
                var due = FrameFeed.now
                while !isStopped.load(ordering: .relaxed) {
                    due += UInt64(1_000_000_000 / rate)
                    sleep(until: due)
                    var span = luma.mutableSpan
                    var bytes = span.mutableBytes
                    draw(number, into: &bytes)
                    let time = MediaTime.now
                    input?.push(
                        luma: luma, chromaBlue: chroma, chromaRed: chroma, width: width, height: height, at: time)
                    number += 1
                }
            }
        }

        func stop() { isStopped.store(true, ordering: .relaxed) }
    }
}

/// Processor time in microseconds.
private enum Processor {
    static var ofThis: Double { time(of: "/proc/self/task") }

    /// Of the processes that this one has started.
    static var ofChildren: Double {
        names(in: "/proc").compactMap { Int32($0) }.filter { parent(of: $0) == getpid() }
            .reduce(0) { $0 + time(of: "/proc/\($1)/task") }
    }

    /// The scheduler's own account of each thread: finer than ticks.
    private static func time(of folder: String) -> Double {
        names(in: folder).reduce(0) { sum, thread in
            let first = text("\(folder)/\(thread)/schedstat").split(separator: " ").first
            return sum + (first.flatMap { Double($0) } ?? 0) / 1000
        }
    }

    private static func parent(of process: Int32) -> Int32? {
        text("/proc/\(process)/stat").split(separator: ")").last?.split(separator: " ").dropFirst().first
            .flatMap { Int32($0) }
    }

    private static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.first != "." { names.append(name) }
        }
        return names
    }

    private static func text(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
