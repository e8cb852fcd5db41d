internal import Foundation
internal import Glibc

/// The pipelines of this user, found by their control sockets: `$XDG_RUNTIME_DIR/connectlive/run-PID.sock`, or
/// `/tmp/connectlive-UID/run-PID.sock` if that folder does not exist.
struct RunningPipelines {
    let folder: String

    init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        if let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/"),
            FileManager.default.fileExists(atPath: runtime)
        {
            folder = "\(runtime)/connectlive"
        } else {
            folder = "/tmp/connectlive-\(getuid())"
        }
    }

    func socket(of pid: Int) -> String { "\(folder)/run-\(pid).sock" }

    /// Creates the folder with mode 0700 and returns the path for this process. Refuses a folder that other users can
    /// enter: they could attach, or place their own sockets there.
    func makeSocketPath() throws -> String {
        func unusable(_ why: String) -> CommandFailure {
            CommandFailure(
                code: "control.unavailable",
                "The folder \(folder) for the control socket cannot be used: \(why). Set XDG_RUNTIME_DIR to a folder "
                    + "of your own.")
        }
        if mkdir(folder, 0o700) != 0, errno != EEXIST { throw unusable(String(cString: strerror(errno)).lowercased()) }
        var status = stat()
        guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw unusable(
                "it is not a folder")
        }
        guard status.st_uid == getuid() else { throw unusable("it belongs to another user") }
        guard status.st_mode & 0o077 == 0 || chmod(folder, 0o700) == 0 else {
            throw unusable("other users can enter it")
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
            throw CommandFailure(
                code: "control.none-running",
                "No pipeline of yours is running. Start one with 'connectlive run', or watch a room server "
                    + "with 'connectlive top --server'.")
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
