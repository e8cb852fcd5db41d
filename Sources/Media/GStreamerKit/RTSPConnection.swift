internal import CGLib
internal import Dispatch
internal import Glibc
internal import MediaGraph
internal import Synchronization

/// A TCP connection to an RTSP server, with a deadline for everything that is done on it.
final class RTSPConnection {
    /// The most that is read of an answer.
    private static let longestAnswer = 256 * 1024

    private let descriptor: Int32
    private let deadline: UInt64
    private var sequence = 0
    private var received: [UInt8] = []

    /// `deadline` is in nanoseconds on the monotonic clock.
    init(_ address: RTSPAddress, deadline: UInt64) throws(RTSPProbe.Failure) {
        self.deadline = deadline
        var failure = RTSPProbe.Failure.noSuchHost
        for place in try Self.resolve(address, deadline: deadline) {
            do throws(RTSPProbe.Failure) {
                descriptor = try Self.connect(place, deadline: deadline)
                return
            } catch {
                failure = error
            }
        }
        throw failure
    }

    deinit {
        close(descriptor)
    }

    func describe(_ url: String, authorization: String?) throws(RTSPProbe.Failure) -> RTSPAnswer {
        sequence += 1
        var lines = [
            "DESCRIBE \(url) RTSP/1.0", "CSeq: \(sequence)", "Accept: application/sdp", "User-Agent: connectlive",
        ]
        if let authorization { lines.append("Authorization: \(authorization)") }
        try send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        return try receive()
    }

    // MARK: Finding the server

    /// One of a host's addresses.
    private struct Place: Sendable {
        let family: Int32
        let bytes: [UInt8]

        static func all(host: String, port: Int) -> [Place] {
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo(host, "\(port)", &hints, &list) == 0 else { return [] }
            defer { freeaddrinfo(list) }
            return Swift.sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
                guard let entry = entry?.pointee, let address = entry.ai_addr else { return nil }
                let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen))
                return Place(family: entry.ai_family, bytes: Array(bytes))
            }
        }
    }

    /// What a thread of its own found.
    private final class Found: Sendable {
        let places = Mutex<[Place]>([])
        let isDone = DispatchSemaphore(value: 0)
    }

    /// Names are looked up on another thread, because that can take longer than anybody wants to wait.
    private static func resolve(_ address: RTSPAddress, deadline: UInt64) throws(RTSPProbe.Failure) -> [Place] {
        let found = Found()
        DispatchQueue.global().async {
            let places = Place.all(host: address.host, port: address.port)
            found.places.withLock { $0 = places }
            found.isDone.signal()
        }
        let limit = DispatchTime.now() + .milliseconds(milliseconds(until: deadline))
        guard found.isDone.wait(timeout: limit) == .success else { throw .silent }
        let places = found.places.withLock { $0 }
        if places.isEmpty { throw .noSuchHost }
        return places
    }

    private static func connect(_ place: Place, deadline: UInt64) throws(RTSPProbe.Failure) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(place.family, kind, 0)
        guard descriptor >= 0 else { throw .unreachable(errorText(errno)) }
        do throws(RTSPProbe.Failure) {
            var code = place.bytes.withUnsafeBytes { bytes in
                bytes.withMemoryRebound(to: sockaddr.self) {
                    Glibc.connect(descriptor, $0.baseAddress, socklen_t(bytes.count)) == 0 ? 0 : errno
                }
            }
            if code == EINPROGRESS {
                try wait(descriptor, for: POLLOUT, until: deadline)
                var size = socklen_t(MemoryLayout<Int32>.size)
                getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
            }
            switch code {
            case 0: return descriptor
            case ECONNREFUSED: throw .refused
            case ETIMEDOUT: throw .silent
            default: throw .unreachable(errorText(code))
            }
        } catch {
            close(descriptor)
            throw error
        }
    }

    // MARK: Messages

    private func send(_ bytes: [UInt8]) throws(RTSPProbe.Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try Self.wait(descriptor, for: POLLOUT, until: deadline)
            } else if errno != EINTR {
                throw .unreachable(Self.errorText(errno))
            }
        }
    }

    private func receive() throws(RTSPProbe.Failure) -> RTSPAnswer {
        let gap: [UInt8] = [13, 10, 13, 10]
        while true {
            if received.count >= 5, !received.starts(with: Array("RTSP/".utf8)) { throw .notRTSP }
            guard let end = received.firstRange(of: gap) else {
                try readMore()
                continue
            }
            let head = String(decoding: received[..<end.lowerBound], as: UTF8.self)
            guard var answer = RTSPAnswer(head: head) else { throw .notRTSP }
            let length = answer.headers(named: "content-length").first.flatMap { Int($0) } ?? 0
            guard (0...Self.longestAnswer).contains(length) else { throw .notRTSP }
            while received.count < end.upperBound + length { try readMore() }
            answer.body = String(decoding: received[end.upperBound..<end.upperBound + length], as: UTF8.self)
            received.removeFirst(end.upperBound + length)
            return answer
        }
    }

    private func readMore() throws(RTSPProbe.Failure) {
        guard received.count <= 2 * Self.longestAnswer else { throw .notRTSP }
        try Self.wait(descriptor, for: POLLIN, until: deadline)
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count > 0 {
            received += chunk[..<count]
        } else if count == 0 || errno == ECONNRESET {
            // What closes the connection at the first words is no RTSP server.
            throw .notRTSP
        } else if errno != EAGAIN, errno != EINTR {
            throw .unreachable(Self.errorText(errno))
        }
    }

    private static func milliseconds(until deadline: UInt64) -> Int {
        let now = GStreamer.now.nanoseconds
        return now < deadline ? Int((deadline - now) / 1_000_000) : 0
    }

    private static func wait(
        _ descriptor: Int32, for events: Int32, until deadline: UInt64
    ) throws(RTSPProbe.Failure) {
        var question = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        while true {
            let answer = poll(&question, 1, Int32(milliseconds(until: deadline)))
            if answer > 0 { return }
            if answer == 0 { throw .silent }
            if errno != EINTR { throw .unreachable(errorText(errno)) }
        }
    }

    private static func errorText(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// GLib's digests and encodings.
enum Hashing {
    static func md5(_ text: String) -> String {
        takeString(g_compute_checksum_for_string(G_CHECKSUM_MD5, text, -1)) ?? ""
    }

    static func base64(_ bytes: [UInt8]) -> String {
        takeString(g_base64_encode(bytes, gsize(bytes.count))) ?? ""
    }
}
