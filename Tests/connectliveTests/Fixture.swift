import Foundation
import Glibc
import Testing

/// A program of Tests/fixtures, for as long as it is kept.
final class Fixture {
    /// The line of JSON by which it said that it can be used.
    let announcement: [String: Any]
    private let process = Process()
    private let input = Pipe()

    init(_ script: String, _ arguments: [String] = []) throws {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("fixtures/\(script)").path
        let output = Pipe()
        // Debian's own Python: that is where Debian's packages for Python are.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [path] + arguments
        process.standardInput = input
        process.standardOutput = output
        // Programs that are started later must not hold it open.
        _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try process.run()
        var line = Data()
        while line.last != 10 {
            let part = output.fileHandleForReading.availableData
            try #require(!part.isEmpty, "\(script) ended before it could be used")
            line += part
        }
        announcement = try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
    }

    /// The environment that whoever uses it takes over.
    var environment: [String: String] { announcement["environment"] as? [String: String] ?? [:] }

    deinit {
        // It ends when its standard input does.
        try? input.fileHandleForWriting.close()
        let deadline = ContinuousClock.now + .seconds(3)
        while process.isRunning, ContinuousClock.now < deadline { usleep(10_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
}
