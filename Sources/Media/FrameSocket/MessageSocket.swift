internal import CLinux
internal import Glibc
import Synchronization

/// One end of a Unix socket that keeps messages apart (SOCK_SEQPACKET). Nothing of it blocks but `waitUntilReadable`.
package final class MessageSocket: Sendable {
    /// What came out of a socket.
    package enum Received: Sendable {
        /// `isCut` tells that the message was longer, or had more descriptors, than is taken.
        case message([UInt8], descriptors: [Descriptor], isCut: Bool)
        /// Nothing is there now.
        case nothing
        /// The other end has gone.
        case end
    }

    private let descriptor: Descriptor

    package init(_ descriptor: Descriptor) {
        self.descriptor = descriptor
    }

    /// The number for those who wait for it. Valid as long as the value lives.
    package var number: Int32 { descriptor.number }

    /// Connects to a path. Somebody who listens may be too busy to let others in; they have so many seconds.
    package static func connect(to path: String, patience: Double = 0) throws(FrameSocketError) -> MessageSocket {
        let deadline = ContinuousClock.now + .seconds(patience)
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

    /// Two ends that are connected: one to keep, and one for a program to inherit.
    package static func pair() throws(FrameSocketError) -> (MessageSocket, Descriptor) {
        var ends: [Int32] = [-1, -1]
        let answer = clinux_pair(&ends)
        guard answer == 0 else { throw .unavailable("of a program", words(-answer)) }
        return (MessageSocket(Descriptor(taking: ends[0])), Descriptor(taking: ends[1]))
    }

    /// Sends a message. False when the other end does not read, or has gone.
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
        // An empty message cannot be told from the end.
        if failure < 0 || bytes.isEmpty { return .end }
        return .message(bytes, descriptors: attached, isCut: isCut != 0)
    }

    /// Waits for a message or the end. False when neither has come.
    package func waitUntilReadable(seconds: Double) -> Bool {
        // Rounded up: who waits for the rest of a millisecond is not to ask over and over.
        clinux_wait_readable(number, Int32((max(0, min(seconds, 1_000_000)) * 1000).rounded(.up))) > 0
    }

    /// Ends the connection for both sides, whoever still holds the value. What was sent can still be read.
    package func shutDown() { shutdown(number, Int32(SHUT_RDWR)) }

    /// The user and the process at the other end.
    package var peer: (user: UInt32, process: Int32)? {
        var (user, process): (uid_t, pid_t) = (0, 0)
        return clinux_peer(number, &user, &process) == 0 ? (user, process) : nil
    }
}

/// Listens at a path for one user: the file has mode 0600 and goes with the value.
package final class MessageListener: Sendable {
    package let path: String
    private let descriptor: Descriptor
    /// What lies at the path; nil when it was withdrawn.
    private let file: Mutex<FileIdentity?>

    /// What is left at the path by a process that is gone is removed first.
    package init(path: String) throws(FrameSocketError) {
        // One at a time: who looks between another's two steps would take a new socket for one that was left.
        let turn = try FolderTurn(of: path)
        defer { withExtendedLifetime(turn) {} }
        GoneSocket.remove(path)
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

    /// Takes the socket away from the path: nobody finds it any more. Whoever waits for it still holds the value then.
    package func withdraw() {
        let file = self.file.withLock { file in
            defer { file = nil }
            return file
        }
        // Another may have taken the path meanwhile.
        if let file, file == FileIdentity(path) { unlink(path) }
    }

    package var number: Int32 { descriptor.number }

    /// The next that wants to connect; nil when nobody does.
    package func accept() -> MessageSocket? {
        let made = clinux_accept(number)
        return made < 0 ? nil : MessageSocket(Descriptor(taking: made))
    }
}

/// A descriptor that is closed with the value.
package final class Descriptor: Sendable {
    package let number: Int32

    package init(taking number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// How many bytes of memory that can never shrink it holds; nil for one that can, or is something else.
    package var sealedBytes: Int? {
        let bytes = clinux_sealed_size(number)
        return bytes >= 0 ? Int(bytes) : nil
    }
}

/// A file, whatever its name.
private struct FileIdentity: Equatable {
    private let device: dev_t
    private let number: ino_t

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        (device, number) = (status.st_dev, status.st_ino)
    }
}

/// Keeps others, also in other processes, from making sockets in the same folder for as long as the value lives.
private struct FolderTurn {
    /// Seconds that whoever has the turn may take.
    private static let patience = 2.0

    private let folder: Descriptor

    init(of path: String) throws(FrameSocketError) {
        let end = path.lastIndex(of: "/")
        let made = open(end.map { String(path[...$0]) } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard made >= 0 else { throw .unavailable(path, words(errno)) }
        folder = Descriptor(taking: made)
        let deadline = ContinuousClock.now + .seconds(Self.patience)
        // A program that was halted in its turn must not hold this one up for ever.
        while flock(made, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw .unavailable(path, words(errno)) }
            guard ContinuousClock.now < deadline else {
                throw .unavailable(path, "another program holds the lock on its folder")
            }
            usleep(5000)
        }
    }
}

private enum GoneSocket {
    /// Removes a socket at which nobody listens. One whose queue is full is somebody's.
    static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        let made = clinux_connect(path)
        if made >= 0 {
            close(made)
        } else if made == -ECONNREFUSED {
            unlink(path)
        }
    }
}

func words(_ number: Int32) -> String {
    String(cString: strerror(number)).lowercased()
}
