internal import Glibc

/// The files of a server with TLS, in PEM.
package struct TLSFiles: Sendable, Equatable {
    /// The server's certificate, and behind it those between it and its authority.
    package var certificate: String
    package var key: String

    package init(certificate: String, key: String) {
        (self.certificate, self.key) = (certificate, key)
    }

    /// A value that differs after one of the files was written or replaced, or got another owner or mode: a file that the
    /// server was not allowed to read may be readable then.
    struct Stamp: Equatable {
        private struct File: Equatable {
            var device: UInt64
            var number: UInt64
            var size: Int64
            var written: Time
            /// When its contents, owner or mode changed last.
            var changed: Time
        }

        private struct Time: Equatable {
            var seconds: Int
            var nanoseconds: Int

            init(_ time: timespec) { (seconds, nanoseconds) = (time.tv_sec, time.tv_nsec) }
        }

        private let files: [File?]

        init(of files: TLSFiles) {
            self.files = [files.certificate, files.key].map(Self.file)
        }

        private static func file(_ path: String) -> File? {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            return File(
                device: UInt64(status.st_dev), number: UInt64(status.st_ino), size: Int64(status.st_size),
                written: Time(status.st_mtim), changed: Time(status.st_ctim))
        }
    }
}
