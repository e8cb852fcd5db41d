import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

/// Another program in its own folder, without the server file or key of the user who runs the tests.
class RunningProgram {
    struct Result {
        var status: Int32
        var output: String
        var error: String
    }

    private static let starting = Mutex(())

    let process = Process()
    private let output = Collector()
    private let errors = Collector()
    // Kept for as long as the program may use it.
    private let folder: TemporaryFolder

    init(
        _ program: String, _ arguments: [String], folder: TemporaryFolder, environment: [String: String] = [:],
        errors other: Pipe? = nil
    ) throws {
        self.folder = folder
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CONNECTLIVE_") }
        variables["XDG_RUNTIME_DIR"] = folder.path
        variables.removeValue(forKey: "DISPLAY")
        variables.removeValue(forKey: "WAYLAND_DISPLAY")
        process.environment = variables.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output.pipe
        process.standardError = other ?? errors.pipe
        // A program inherits the signals that the tests ignore: SIGINT in the background of a shell, SIGHUP under nohup.
        // One start at a time: another would restore them before this program has begun, or keep the default for the tests.
        try Self.starting.withLock { _ in
            let inherited = [SIGINT, SIGHUP].map { ($0, signal($0, SIG_DFL)) }
            defer { for (number, action) in inherited { signal(number, action) } }
            try process.run()
        }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    func finish(seconds: Double) throws -> Result {
        let ended = wait(seconds: seconds) { !self.process.isRunning }
        if !ended { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        try #require(ended, "\(process.arguments ?? []) still ran after \(seconds) s: \(errors.finish())")
        return Result(status: process.terminationStatus, output: output.finish(), error: errors.finish())
    }

    /// Waits for the first or a later line on standard output or standard error that contains the text.
    func waitForText(_ text: String, count: Int = 1, seconds: Double = 20) throws -> String {
        var found: String? {
            (output.text + "\n" + errors.text).split(separator: "\n").filter { $0.contains(text) }.dropFirst(count - 1)
                .first.map(String.init)
        }
        let ended = wait(seconds: seconds) { found != nil || !self.process.isRunning }
        // The end of a program can be seen before its last words.
        if !process.isRunning { (_, _) = (output.finish(), errors.finish()) }
        return try #require(found, "no '\(text)' (\(ended ? "ended" : "still running")): \(output.text)\(errors.text)")
    }

    func interrupt() { kill(process.processIdentifier, SIGINT) }

    func wait(seconds: Double, for condition: () -> Bool) -> Bool {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while !condition() {
            guard ContinuousClock.now < deadline else { return false }
            // Another process's file descriptor has no event that a test could wait for portably, so this polls.
            usleep(20_000)
        }
        return true
    }
}

/// Reads a pipe to its end in the background.
private final class Collector: Sendable {
    let pipe = Pipe()
    private let data = Mutex(Data())
    private let ended = DispatchSemaphore(value: 0)

    init() {
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in
            while true {
                let part = handle.availableData
                if part.isEmpty { break }
                data.withLock { $0 += part }
            }
            ended.signal()
        }
    }

    var text: String { String(decoding: data.withLock { $0 }, as: UTF8.self) }

    func finish() -> String {
        if ended.wait(timeout: .now() + 2) == .success { ended.signal() }
        return text
    }
}
