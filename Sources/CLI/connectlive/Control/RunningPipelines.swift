internal import Foundation
internal import Glibc
internal import MediaNodes

/// The pipelines of this user, found by their control sockets: `run-PID.sock` in `RuntimeFolder`.
struct RunningPipelines {
    let folder = RuntimeFolder.path

    func socket(of pid: Int) -> String { "\(folder)/run-\(pid).sock" }

    /// Creates the folder and returns the path for this process.
    func makeSocketPath() throws -> String {
        if let obstacle = RuntimeFolder.make() {
            throw CommandFailure(
                code: "control.unavailable",
                "The folder \(folder) for the control socket cannot be used: \(obstacle). Set XDG_RUNTIME_DIR to a "
                    + "folder of your own.")
        }
        removeStale()
        let path = socket(of: Int(getpid()))
        // Only an earlier process with the same number can have left this socket.
        unlink(path)
        return path
    }

    /// The sockets of running processes, sorted by process number.
    func list() -> [(pid: Int, path: String)] {
        removeStale()
        return sockets()
    }

    private func sockets() -> [(pid: Int, path: String)] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.compactMap { name in
            guard name.hasPrefix("run-"), name.hasSuffix(".sock"), let pid = Int(name.dropFirst(4).dropLast(5)),
                pid > 0, pid <= Int(Int32.max)
            else { return nil }
            return (pid, "\(folder)/\(name)")
        }.sorted { $0.pid < $1.pid }
    }

    /// Removes the sockets of processes that were killed.
    private func removeStale() {
        for (pid, path) in sockets() where kill(pid_t(pid), 0) != 0 && errno == ESRCH { unlink(path) }
    }

    /// Returns the socket to attach to: that of the named process, the named path, or the only running one.
    ///
    /// - Parameter flag: the option that names it. Nil if it is an argument.
    func find(_ name: String?, by flag: String? = nil) throws -> String {
        let running = list()
        if let name {
            guard let pid = Int(name) else { return name }
            guard running.contains(where: { $0.pid == pid }) else {
                throw CommandFailure(
                    code: "control.none-running",
                    "Process \(pid) does not run a pipeline of yours. "
                        + (running.isEmpty
                            ? "No pipeline is running. Start one with 'connectlive run'."
                            : "Choose one of \(Self.numbers(running))."))
            }
            return socket(of: pid)
        }
        guard let only = running.first else {
            // Commands that take the process as an option change a pipeline, so a server does not help.
            let other = flag == nil ? ", or watch a room server with 'connectlive top --server'" : ""
            throw CommandFailure(
                code: "control.none-running",
                "No pipeline of yours is running. Start one with 'connectlive run'\(other).")
        }
        guard running.count == 1 else {
            throw CommandFailure(
                code: "control.several-running",
                "\(running.count) pipelines are running. Choose one by its process number"
                    + "\(flag.map { " with \($0)" } ?? ""): \(Self.numbers(running)).")
        }
        return only.path
    }

    private static func numbers(_ running: [(pid: Int, path: String)]) -> String {
        running.map { "\($0.pid)" }.joined(separator: ", ")
    }
}
