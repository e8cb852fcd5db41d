internal import Foundation
internal import RoomClient

/// This program as a room server in a process of its own, so that its threads are its own too.
final class ServerProcess {
    let access: ServerAccess
    private let process: Process
    private let input: Pipe
    private let counterFile: String?

    /// - Parameters:
    ///   - counter: path of the malloc counter to load into the process; nil for none.
    ///   - core: the processor core that it may use; nil for any.
    init(counter: String?, core: Int?) throws {
        let executable = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process = Process()
        input = Pipe()
        let output = Pipe()
        process.standardInput = input
        process.standardOutput = output
        var environment = ProcessInfo.processInfo.environment
        if let counter {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("allocations-\(UUID())").path
            environment["MALLOC_COUNTER_FILE"] = file
            environment["MALLOC_COUNTER_THREAD"] = Self.loopName
            // `taskset` and whatever else runs on the way would count into the same file: only this program is meant.
            environment["LD_PRELOAD"] = counter
            counterFile = file
        } else {
            counterFile = nil
        }
        process.environment = environment
        process.executableURL = URL(fileURLWithPath: core == nil ? executable : "/usr/bin/taskset")
        process.arguments = (core.map { ["--cpu-list", String($0), executable] } ?? []) + ["serve"]
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw BenchmarkError("The room server ended before it was up.") }
            line.append(data)
        }
        access = try JSONDecoder().decode(ServerAccess.self, from: line)
    }

    /// Name of the thread that all rooms live on.
    private static let loopName = "rooms"

    /// Processor time of the rooms' thread, in nanoseconds.
    func processorTime() throws -> UInt64 {
        guard let time = ProcessorTime.nanoseconds(ofThreads: Self.loopName, in: process.processIdentifier) else {
            throw BenchmarkError("The server has no thread '\(Self.loopName)'.")
        }
        return time
    }

    /// Memory that the process has written, in KiB.
    func memory() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    /// Nil without a counter.
    func allocations() throws -> AllocationCounts? {
        guard let counterFile else { return nil }
        guard let counts = AllocationCounts(file: counterFile) else {
            throw BenchmarkError("The malloc counter wrote nothing to \(counterFile).")
        }
        return counts
    }

    func token() async throws -> String { try await access.token() }

    /// Ends the process and waits for it.
    func stop() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
        if let counterFile { try? FileManager.default.removeItem(atPath: counterFile) }
    }
}
