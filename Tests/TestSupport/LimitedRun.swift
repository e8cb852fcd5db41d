public import Foundation
import Glibc

extension Process {
    /// The end of a program.
    public struct Outcome: Sendable {
        public let status: Int32
        /// Both outputs together.
        public let output: String
    }

    /// Why a program did not run to its end.
    public struct Overdue: Error, CustomStringConvertible {
        public let description: String
    }

    /// Runs the program to its end, without Foundation's `run()`, which now and then does not notice the end. Its children
    /// may go on: their output after that is ignored. Blocks.
    ///
    /// - Throws: `Overdue` if it still runs after `seconds`. It is killed then.
    public func runToEnd(within seconds: Double) throws -> Outcome {
        // A file never blocks the program, and has an end although children still hold it.
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("output-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let pid = try spawn(output: file.path)
        let words = ([executableURL?.path ?? ""] + (arguments ?? [])).joined(separator: " ")
        let deadline = ContinuousClock.now + .seconds(seconds)
        var status: Int32 = 0
        while waitpid(pid, &status, WNOHANG) == 0 {
            guard .now < deadline else {
                kill(pid, SIGKILL)
                // One that waits for a driver in the kernel stays.
                usleep(100_000)
                _ = waitpid(pid, &status, WNOHANG)
                throw Overdue(description: "\(words) still ran after \(seconds) s: \(Self.text(of: file).suffix(4000))")
            }
            usleep(2000)
        }
        // Of a signal, the lowest bits are its number.
        return Outcome(status: status & 0x7f == 0 ? status >> 8 & 0xff : status & 0x7f, output: Self.text(of: file))
    }

    private static func text(of file: URL) -> String {
        String(decoding: (try? Data(contentsOf: file)) ?? Data(), as: UTF8.self)
    }

    private func spawn(output: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_APPEND, 0)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        let path = executableURL?.path ?? ""
        // Glibc's module has no action that changes the folder.
        let moved = currentDirectoryURL.map { ["/usr/bin/env", "-C", $0.path] } ?? []
        let command = moved + [path] + (arguments ?? [])
        let environment = environment ?? ProcessInfo.processInfo.environment
        func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }
        let (words, variables) = (pointers(command), pointers(environment.map { "\($0)=\($1)" }))
        defer { for pointer in words + variables { free(pointer) } }
        var pid = pid_t()
        let problem = posix_spawn(&pid, command[0], &actions, nil, words, variables)
        guard problem == 0 else {
            throw Overdue(description: "\(path) does not start: \(String(cString: strerror(problem)))")
        }
        return pid
    }
}
