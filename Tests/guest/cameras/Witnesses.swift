import Foundation
import Glibc
import MediaNodes
import TestSupport
import Testing

/// A program that runs beside the test, with its output.
final class Background {
    private let process: Process
    let file: String

    /// - Parameter file: for its output.
    init(_ program: String, _ arguments: [String], into file: String) throws {
        self.file = file
        try "".write(toFile: file, atomically: false, encoding: .utf8)
        let output = try #require(FileHandle(forWritingAtPath: file))
        process = try Program.start(program, arguments, output: output)
        try output.close()
    }

    /// The program that users call.
    static func tool(_ arguments: String..., name: String) throws -> Background {
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        return try Background(
            folder.appendingPathComponent("connectlive").path, arguments, into: NSTemporaryDirectory() + name + ".log")
    }

    var lines: [Substring] {
        let text = (try? FileHandle(forReadingAtPath: file)?.readToEnd()) ?? Data()
        return String(decoding: text, as: UTF8.self).split(separator: "\n")
    }

    var footprint: Footprint { .of("\(process.processIdentifier)") }
    var isRunning: Bool { process.isRunning }

    func end(_ signal: Int32 = SIGKILL) {
        guard process.isRunning else { return }
        kill(process.processIdentifier, signal)
        process.waitUntilExit()
    }

    deinit { end() }
}

/// The packets and messages on this machine's network, by the program `wire`.
final class Wire {
    private let program: Background

    init(of port: Int) async throws {
        program = try Background("Tests/guest/wire", ["\(port)"], into: NSTemporaryDirectory() + "wire.log")
        await eventually(within: 60, "the wire is read") { !program.lines.isEmpty }
    }

    /// The types of the server's messages so far.
    var messages: [String] {
        program.lines.filter { $0.hasPrefix("message ") }.map { String($0.dropFirst("message ".count)) }
    }

    /// The SSRCs of each flow and payload type.
    var sources: [String: [Substring]] {
        let streams = program.lines.filter { $0.hasPrefix("stream ") }.map { $0.split(separator: " ") }
        return Dictionary(grouping: streams) { $0[1...2].joined(separator: " ") }.mapValues { $0.map { $0[3] } }
    }

    func end() { program.end() }
}

/// The kernel's record of the buffers of its cameras. Times are seconds of CLOCK_MONOTONIC.
struct BufferTrace {
    private static let folder = "/sys/kernel/tracing"

    init() throws {
        if !FileManager.default.fileExists(atPath: "\(Self.folder)/trace") {
            try Program.run("mount", ["-t", "tracefs", "tracefs", Self.folder])
        }
        try Self.write("mono", to: "trace_clock")
        try Self.write("8192", to: "buffer_size_kb")
        for event in ["vb2_qbuf", "vb2_buf_done"] { try Self.write("1", to: "events/vb2/\(event)/enable") }
    }

    private static func write(_ text: String, to file: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(file)"))
    }

    /// The times of the first buffer after each start of a camera. Before it, the camera is given all its buffers, and its
    /// driver owns none.
    func firstBuffers() throws -> [Double] {
        let program = """
            /: vb2_qbuf:/ { if (/owned_by_drv = 0,/) given++; else given = 0 }
            /: vb2_buf_done:/ {
                if (given >= 5) for (i = 2; i <= NF; i++) if ($i == "vb2_buf_done:") print $(i - 1) + 0
                given = 0
            }
            """
        // awk reads millions of characters faster than this process.
        return try Program.run("awk", ["-v", "CONVFMT=%.6f", "-v", "OFMT=%.6f", program, "\(Self.folder)/trace"])
            .split(separator: "\n").compactMap { Double($0) }
    }

    func end() throws {
        for event in ["vb2_qbuf", "vb2_buf_done"] { try Self.write("0", to: "events/vb2/\(event)/enable") }
    }
}

/// When the frames of a video changed.
final class Movement: Sendable {
    private let last = Collected<[UInt8]>()
    /// In seconds of CLOCK_MONOTONIC.
    let times = Collected<Double>()

    /// On one thread.
    func take(_ frame: VideoFrame) {
        let points = frame.withPlane(.luma) { plane, stride in
            Swift.stride(from: 0, to: frame.height * stride - stride, by: 8 * stride).flatMap { row in
                Swift.stride(from: 0, to: frame.width, by: 8).map {
                    plane.unsafeLoad(fromByteOffset: row + $0, as: UInt8.self)
                }
            }
        }
        let before = last.all.first ?? []
        last.removeAll()
        last.append(points)
        // Encoding the same frame again changes it less.
        let changed = zip(before, points).count { abs(Int($0) - Int($1)) > 40 }
        if before.isEmpty || changed > points.count / 50 { times.append(monotonicSeconds()) }
    }
}

/// Seconds of CLOCK_MONOTONIC.
func monotonicSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
