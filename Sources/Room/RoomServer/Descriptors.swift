internal import Glibc

/// The file descriptors of this process. A connection uses one, and a session one for each listen address.
enum Descriptors {
    /// Sessions leave this many free, so that new clients can connect and receive the error.
    static let sessionReserve = 24
    /// Connections leave this many free for the rest of the process.
    static let connectionReserve = 8
    /// The highest limit to request: child processes that close all descriptors should not try a billion.
    private static let wanted = rlim_t(65536)

    /// Raises the limit as far as the system allows. Most shells set it to 1024.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < wanted else { return }
        limit.rlim_cur = min(limit.rlim_max, wanted)
        setrlimit(resource, &limit)
    }

    /// Whether more than the reserve are free. The system assigns the lowest free number, which shows how many are in
    /// use.
    static func areLeft(besides reserve: Int) -> Bool {
        let lowest = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard lowest >= 0 else { return false }
        close(lowest)
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 && rlim_t(lowest) + rlim_t(reserve) < limit.rlim_cur
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
}
