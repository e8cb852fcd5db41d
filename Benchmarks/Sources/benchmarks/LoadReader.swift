internal import CEpoll
internal import Glibc
internal import PeerIO

/// Waits for the sockets of one loop on a thread of its own, and reads them on the loop.
final class LoadReader: @unchecked Sendable {
    // Sendable by hand: `paths` is touched on the loop only, and the kernel synchronises the rest.
    private let loop: EventLoop
    private let descriptor = epoll_create1(0)
    private var paths: [Int32: LoadPath] = [:]
    private let isRead: UnsafeMutablePointer<sem_t>
    private static let most = 256

    /// Lives as long as the process.
    init(loop: EventLoop) {
        self.loop = loop
        isRead = .allocate(capacity: 1)
        sem_init(isRead, 0, 0)
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<LoadReader>.fromOpaque(argument).takeUnretainedValue().wait() }
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
    }

    private func wait() {
        var ready = [epoll_event](repeating: epoll_event(), count: Self.most)
        while true {
            let count = epoll_wait(descriptor, &ready, Int32(Self.most), -1)
            guard count > 0 else { continue }
            let descriptors = ready.prefix(Int(count)).map(\.data.fd)
            loop.execute { [self] in
                for each in descriptors { paths[each]?.read() }
                sem_post(isRead)
            }
            // The loop has read before this thread waits again, which would find the same sockets.
            sem_wait(isRead)
        }
    }

    func add(_ path: LoadPath, _ socket: Int32) {
        paths[socket] = path
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = socket
        epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event)
    }

    func remove(_ socket: Int32) {
        paths[socket] = nil
        epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil)
    }
}
