internal import Glibc
package import RoomProtocol

/// The file descriptors of this process. A connection uses one and, with `ICE.full`, a session one for each listen
/// address.
enum Descriptors {
    /// Sessions leave this many free, so that new clients can connect and receive the error.
    static let sessionReserve = 24
    /// Connections leave this many free for the rest of the process.
    static let connectionReserve = 8
    /// The highest limit to request: child processes that close all descriptors should not try a billion.
    private static let wanted = rlim_t(65536)
    /// The most that a server without participants has open: streams, libraries, signalling.
    static let base = 20
    /// The most that a thread has open: its loop's and its media socket.
    static let perThread = 3

    /// Raises the limit as far as the system allows. Most shells set it to 1024.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < wanted else { return }
        limit.rlim_cur = min(limit.rlim_max, wanted)
        setrlimit(resource, &limit)
    }

    /// Whether more than the reserve are free.
    static func areLeft(besides reserve: Int) -> Bool { left > reserve }

    /// How many more the process may open. The system assigns the lowest free number, which shows how many are in use.
    static var left: Int {
        let lowest = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard lowest >= 0 else { return 0 }
        close(lowest)
        return limit - Int(lowest)
    }

    static var limit: Int {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? Int(clamping: limit.rlim_cur) : .max
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
}

extension RoomServer {
    /// Allows the default number of participants.
    package static let usualDescriptorLimit = 4096

    /// The most files that a server may open: the soft limit, raised to the hard one.
    package static var openFileLimit: Int {
        Descriptors.raiseLimit()
        return Descriptors.limit
    }

    /// Raises the soft limit on open files to the hard one. Returns the error if a server cannot start with that.
    package static func raiseDescriptorLimit(threads: Int) -> RoomError? {
        Descriptors.raiseLimit()
        let needed = Descriptors.base + Descriptors.perThread * threads + Descriptors.connectionReserve
        guard Descriptors.limit < needed else { return nil }
        return RoomError(
            .serverFull,
            "A server with \(threads) thread\(threads == 1 ? "" : "s") needs \(needed) open files, and the limit is "
                + "\(Descriptors.limit). Raise it: ulimit -n \(usualDescriptorLimit)")
    }
}
