public import Foundation

extension Process {
    /// The end of a program.
    public struct Outcome: Sendable {
        public let status: Int32
        /// Both outputs together.
        public let output: String
    }

    public struct Overdue: Error, CustomStringConvertible {
        public let description: String
    }

    /// Runs the program to its end. Its children may go on: their output after that is ignored. Blocks.
    ///
    /// - Throws: `Overdue` if it still runs after `seconds`. It is killed then.
    public func runToEnd(within seconds: Double) throws -> Outcome {
        // A file never blocks the program, and has an end although children still hold it.
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("output-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let writer = try FileHandle(forWritingTo: file)
        try writer.seekToEnd()
        (standardOutput, standardError) = (writer, writer)
        standardInput = FileHandle.nullDevice
        let end = DispatchSemaphore(value: 0)
        terminationHandler = { _ in end.signal() }
        try run()
        let isOver = end.wait(timeout: .now() + seconds) == .success
        if !isOver { kill(processIdentifier, SIGKILL) }
        let output = String(decoding: (try? Data(contentsOf: file)) ?? Data(), as: UTF8.self)
        guard isOver else {
            let words = ([executableURL?.path ?? ""] + (arguments ?? [])).joined(separator: " ")
            throw Overdue(description: "\(words) still ran after \(seconds) s: \(output.suffix(4000))")
        }
        return Outcome(status: terminationStatus, output: output)
    }
}
