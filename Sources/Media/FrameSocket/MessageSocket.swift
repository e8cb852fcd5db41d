internal import CLinux
internal import Glibc
import Synchronization

/// One end of a Unix socket that preserves message boundaries (SOCK_SEQPACKET). Only `connect` and `waitUntilReadable`
/// block.
package final class MessageSocket: Sendable {
    /// The result of a read.
    package enum Received: Sendable {
        /// `isCut`: the message was longer, or had more descriptors, than the limits.
        case message([UInt8], descriptors: [Descriptor], isCut: Bool)
        /// No message is available.
        case nothing
        /// The other end closed the connection.
        case end
    }

    private let descriptor: Descriptor

    package init(_ descriptor: Descriptor) {
        self.descriptor = descriptor
    }

    /// The descriptor's number, for polling. Valid as long as this object lives.
    package var number: Int32 { descriptor.number }

    /// Connects to a path. Blocks while the listener's queue is full, up to the timeout in seconds. Throws
    /// `feed.unavailable`.
    package static func connect(to path: String, timeout: Double = 0) throws(FrameSocketError) -> MessageSocket {
        let deadline = ContinuousClock.now + .seconds(timeout)
        while true {
            let made = clinux_connect(path)
            if made >= 0 { return MessageSocket(Descriptor(taking: made)) }
            guard made == -EAGAIN else { throw .unavailable(path, words(-made)) }
            guard ContinuousClock.now < deadline else {
                throw .unavailable(
                    path,
                    "the listener accepts no connections")
            }
            usleep(10_000)
        }
    }

    /// Two connected ends: one to keep, and one for a program to inherit.
    package static func pair() throws(FrameSocketError) -> (MessageSocket, Descriptor) {
        var ends: [Int32] = [-1, -1]
        let answer = clinux_pair(&ends)
        guard answer == 0 else { throw .unavailable("of a program", words(-answer)) }
        return (MessageSocket(Descriptor(taking: ends[0])), Descriptor(taking: ends[1]))
    }

    /// Sends a message without blocking. Returns false if the other end does not read or has closed the connection.
    @discardableResult
    package func send(_ message: FrameMessage, _ attached: Descriptor? = nil) -> Bool {
        send(message.bytes, attached)
    }

    package func send(_ bytes: [UInt8], _ attached: Descriptor? = nil) -> Bool {
        clinux_send(number, bytes, bytes.count, attached?.number ?? -1) == bytes.count
    }

    package func receive() -> Received {
        var descriptors = [Int32](repeating: -1, count: Int(CLINUX_MOST_DESCRIPTORS))
        var (count, isCut): (Int32, Int32) = (0, 0)
        var failure = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: FrameMessage.limit) { buffer, filled in
            let received = clinux_receive(number, buffer.baseAddress, buffer.count, &descriptors, &count, &isCut)
            filled = max(0, received)
            failure = min(0, received)
        }
        let attached = descriptors.prefix(Int(count)).map { Descriptor(taking: $0) }
        if failure == -Int(EAGAIN) { return .nothing }
        // An empty message looks like the end of the connection.
        if failure < 0 || bytes.isEmpty { return .end }
        return .message(bytes, descriptors: attached, isCut: isCut != 0)
    }

    /// Blocks until a message or the end of the connection arrives. Returns false after the timeout.
    package func waitUntilReadable(seconds: Double) -> Bool {
        // Rounded up, so that a caller with less than a millisecond left does not poll in a loop.
        clinux_wait_readable(number, Int32((max(0, min(seconds, 1_000_000)) * 1000).rounded(.up))) > 0
    }

    /// Ends the connection for both ends, even while other owners hold this object. Sent messages can still be read.
    package func shutDown() { shutdown(number, Int32(SHUT_RDWR)) }

    /// The user and the process at the other end.
    package var peer: (user: UInt32, process: Int32)? {
        var (user, process): (uid_t, pid_t) = (0, 0)
        return clinux_peer(number, &user, &process) == 0 ? (user, process) : nil
    }
}

/// Listens at a path for one user. The socket file has mode 0600 and is removed with this object.
package final class MessageListener: Sendable {
    package let path: String
    private let descriptor: Descriptor
    /// The socket file; nil after `withdraw`.
    private let file: Mutex<FileIdentity?>

    /// Listens at `path`. Removes the socket file of a process that has ended. Throws `feed.unavailable`.
    package init(path: String) throws(FrameSocketError) {
        // One process at a time: between the two steps, another would mistake the new socket for an abandoned one.
        let turn = try FolderTurn(of: path)
        defer { withExtendedLifetime(turn) {} }
        Self.removeAbandoned(path)
        let made = clinux_listen(path)
        guard made >= 0 else {
            let why = made == -EADDRINUSE ? "another program or node listens on it" : words(-made)
            throw .unavailable(path, why)
        }
        self.path = path
        descriptor = Descriptor(taking: made)
        file = Mutex(FileIdentity(path))
    }

    deinit {
        withdraw()
    }

    /// Removes a socket file without a listener. A listener with a full queue keeps its file.
    private static func removeAbandoned(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        let made = clinux_connect(path)
        if made >= 0 { close(made) }
        if made == -ECONNREFUSED { unlink(path) }
    }

    /// Removes the socket file, so that no new connection can be made.
    package func withdraw() {
        let file = self.file.withLock { file in
            defer { file = nil }
            return file
        }
        // Another process may have replaced the file meanwhile.
        if let file, file == FileIdentity(path) { unlink(path) }
    }

    package var number: Int32 { descriptor.number }

    package enum Accepted: Sendable {
        case connection(MessageSocket)
        /// No connection is waiting.
        case nothing
        /// One may be waiting, and cannot be accepted now, for example because the process has no free descriptor. The
        /// listener stays readable.
        case failed(FrameSocketError)
    }

    /// Accepts the next connection.
    package func accept() -> Accepted {
        let made = clinux_accept(number)
        if made >= 0 { return .connection(MessageSocket(Descriptor(taking: made))) }
        if [-EAGAIN, -EINTR, -ECONNABORTED].contains(made) { return .nothing }
        return .failed(
            FrameSocketError(
                code: "feed.unavailable",
                "The frame socket \(path) cannot accept a feeder: \(words(-made)). Raise the limit of open files "
                    + "(ulimit -n), or close other programs."))
    }
}

/// A descriptor that is closed with this object.
package final class Descriptor: Sendable {
    package let number: Int32

    package init(taking number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// The size in bytes of memory that is sealed against shrinking; nil for any other descriptor.
    package var sealedBytes: Int? {
        let bytes = clinux_sealed_size(number)
        return bytes >= 0 ? Int(bytes) : nil
    }
}

/// The identity of a file, independent of its name.
private struct FileIdentity: Equatable {
    private let device: dev_t
    private let number: ino_t

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        (device, number) = (status.st_dev, status.st_ino)
    }
}

/// A lock on a folder: other processes create no sockets in it while this value lives.
private struct FolderTurn {
    /// Timeout in seconds for the lock.
    private static let timeout = 2.0

    private let folder: Descriptor

    init(of path: String) throws(FrameSocketError) {
        let end = path.lastIndex(of: "/")
        let made = open(end.map { String(path[...$0]) } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard made >= 0 else { throw .unavailable(path, words(errno)) }
        folder = Descriptor(taking: made)
        let deadline = ContinuousClock.now + .seconds(Self.timeout)
        // A halted program that holds the lock must not block this one without end.
        while flock(made, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw .unavailable(path, words(errno)) }
            guard ContinuousClock.now < deadline else {
                throw .unavailable(path, "another program holds the lock on its folder")
            }
            usleep(5000)
        }
    }
}

func words(_ number: Int32) -> String {
    String(cString: strerror(number)).lowercased()
}
