internal import Glibc

/// The file descriptors of this process. A connection takes one, and a session one for each address that it listens on.
enum Descriptors {
    /// Left free by sessions: newcomers still connect, and hear why they cannot join.
    static let sessionReserve = 24
    /// Left free by connections, for what else the process opens.
    static let connectionReserve = 8
    /// Raised to at most: children that close what they inherit should not try a billion.
    private static let wanted = rlim_t(65536)

    /// Raises the limit as far as the system allows; most shells set it to 1024.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < wanted else { return }
        limit.rlim_cur = min(limit.rlim_max, wanted)
        setrlimit(resource, &limit)
    }

    /// Whether more than the reserve are left. The system gives out the lowest free number, which shows how near the limit
    /// is.
    static func areLeft(besides reserve: Int) -> Bool {
        let lowest = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard lowest >= 0 else { return false }
        close(lowest)
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 && rlim_t(lowest) + rlim_t(reserve) < limit.rlim_cur
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
}
