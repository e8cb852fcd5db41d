internal import CLinux
internal import Glibc

/// A child program in its own process group. It ends when this value is released, or when this process is killed.
///
/// Callable on any thread, one call at a time.
// @unchecked: the owner makes one call at a time, on its queue.
package final class ChildProcess: @unchecked Sendable {
    /// How a program ended.
    package enum Ending: Sendable, Hashable, CustomStringConvertible {
        case exited(Int32)
        case killed(Int32)

        package var description: String {
            switch self {
            case .exited(let status): "exited with status \(status)"
            case .killed(let signal): "was killed by signal \(signal) (\(String(cString: strsignal(signal))))"
            }
        }

        /// Whether the program reported success.
        package var isGood: Bool { self == .exited(0) }
    }

    /// Why a program did not start.
    package struct Failure: Error, Sendable {
        package let reason: String

        init(reason: String) { self.reason = reason }

        /// The reason of an error number of the system.
        init(_ number: Int32) {
            reason = String(cString: strerror(number)).lowercased()
        }
    }

    /// The environment of this process, to pass on.
    package static var inheritedEnvironment: [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            entry += 1
        }
        return variables
    }

    package let id: Int32
    private let end: OwnedDescriptor
    private var ending: Ending?
    private var isAsked = false

    /// Starts the program at `path`. `descriptors[n]` becomes its descriptor n, or /dev/null if that is nil. It
    /// inherits no others. Blocks while the system opens the program.
    ///
    /// - Parameter limit: how long that may take, in seconds.
    package init(
        path: String, arguments: [String], environment: [String: String], descriptors: [Int32?], limit: Double = 5
    ) throws(Failure) {
        let words = CWords([path] + arguments)
        let variables = CWords(environment.map { "\($0.key)=\($0.value)" })
        let numbers = descriptors.map { $0 ?? -1 }
        let started = clinux_start(
            path, words.pointers, variables.pointers, numbers, Int32(numbers.count), Int32(limit * 1000))
        guard started != -ETIMEDOUT else { throw Failure(reason: "its file system is not responding") }
        guard started > 0 else { throw Failure(-started) }
        let end = clinux_process_descriptor(started)
        guard end >= 0 else {
            _ = Glibc.kill(-started, SIGKILL)
            waitpid(started, nil, 0)
            throw Failure(-end)
        }
        id = started
        self.end = OwnedDescriptor(number: end)
    }

    deinit {
        if ending == nil {
            send(SIGKILL)
            _ = waitForEnd(seconds: 60, discarding: [])
            reap()
        }
    }

    /// Readable once the program has ended. Then query `ended`.
    package var endDescriptor: Int32 { end.number }

    /// How it ended. Nil while it runs. Kills the remaining processes of its group.
    package var ended: Ending? {
        if ending == nil, waitForEnd(seconds: 0, discarding: []) { reap() }
        return ending
    }

    /// Asks the program to end, once. A second request makes some programs abandon their shutdown.
    package func askToEnd() {
        guard ending == nil, !isAsked else { return }
        isAsked = true
        send(SIGTERM)
    }

    package func kill() {
        if ending == nil { send(SIGKILL) }
    }

    /// Asks the program to end, unless that was done, waits, and kills it after `seconds`. Drains the pipes meanwhile,
    /// so that their output does not block the program.
    package func end(within seconds: Double, discarding pipes: [OutputPipe] = []) -> Ending {
        askToEnd()
        if ending == nil, !waitForEnd(seconds: seconds, discarding: pipes) {
            kill()
            // Only a process stuck inside the kernel does not end now.
            _ = waitForEnd(seconds: 60, discarding: pipes)
        }
        reap()
        return ending ?? .killed(SIGKILL)
    }

    private func waitForEnd(seconds: Double, discarding pipes: [OutputPipe]) -> Bool {
        withExtendedLifetime(pipes) {
            clinux_wait_discarding(end.number, Int32(seconds * 1000), pipes.map(\.number), Int32(pipes.count)) > 0
        }
    }

    private func reap() {
        guard ending == nil else { return }
        // Its process and group numbers stay reserved until waitpid, so no other process can be hit.
        send(SIGKILL)
        var status: Int32 = 0
        // If other code has waited for it, its status is unknown.
        guard waitpid(id, &status, WNOHANG) == id else {
            ending = .exited(-1)
            return
        }
        let signal = status & 0x7f
        ending = signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal)
    }

    private func send(_ signal: Int32) {
        _ = Glibc.kill(-id, signal)
    }
}

/// A list of strings for C.
private final class CWords {
    private(set) var pointers: [UnsafeMutablePointer<CChar>?]

    init(_ words: [String]) {
        pointers = words.map { strdup($0) } + [nil]
    }

    deinit {
        for pointer in pointers { free(pointer) }
    }
}
