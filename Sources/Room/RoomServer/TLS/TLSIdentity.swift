internal import Dispatch
internal import Foundation
internal import Logging
internal import NIOCore
internal import NIOSSL
internal import RoomProtocol
internal import RoomTLS
internal import Synchronization

/// The certificate of a server with TLS, which is replaced when its files change. Callable on any thread.
final class TLSIdentity: Sendable {
    /// A pair of files that was read.
    private struct Loaded: Sendable {
        var context: NIOSSLContext
        var certificate: ServerCertificate
        var stamp: TLSFiles.Stamp
    }

    private struct State: Sendable {
        var loaded: Loaded
        /// Other files than the loaded ones, as the last check found them.
        var seen: TLSFiles.Stamp?
        /// Other files that cannot be used.
        var refused: TLSFiles.Stamp?
        /// The warning that was logged last.
        var warning: String?
    }

    /// The time between two checks of the files. Changed files are read when the next check finds no further change.
    static let interval = Duration.seconds(5)
    /// So many days before its expiry, a certificate should have been renewed.
    static let warningDays = 7
    /// How long the end of a connection waits for the client's farewell.
    private static let shutdownTimeout = TimeAmount.seconds(1)

    private let files: TLSFiles
    private let log: LogQueue
    /// Called with each certificate that replaces another one.
    private let replaced: @Sendable (ServerCertificate) -> Void
    private let now: @Sendable () -> Double
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "connectlive.tls-files", qos: .utility)
    private let isStopped = Atomic<Bool>(false)

    /// Reads the files. Throws `server.certificate-unreadable`.
    ///
    /// - Parameter now: seconds since 1970
    init(
        _ files: TLSFiles, log: LogQueue, now: @escaping @Sendable () -> Double = { Date().timeIntervalSince1970 },
        replaced: @escaping @Sendable (ServerCertificate) -> Void = { _ in }
    ) throws(RoomError) {
        self.files = files
        self.log = log
        self.now = now
        self.replaced = replaced
        state = Mutex(State(loaded: try Self.load(files)))
        warnOfExpiry()
    }

    /// For connections that begin now.
    var context: NIOSSLContext { state.withLock { $0.loaded.context } }
    var certificate: ServerCertificate { state.withLock { $0.loaded.certificate } }

    /// Checks the files from now on, until `stop`.
    func watch() {
        queue.asyncAfter(deadline: .now() + Self.interval / .seconds(1)) { [weak self] in
            guard let self, !isStopped.load(ordering: .relaxed) else { return }
            check()
            watch()
        }
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// Checks the files once, and reads them if they have changed and the check before has found the same change: a file that
    /// is being written is not read. Blocks. One caller at a time.
    func check() {
        let stamp = TLSFiles.Stamp(of: files)
        let isReadable = state.withLock { state in
            guard stamp != state.loaded.stamp, stamp != state.refused else {
                state.seen = nil
                return false
            }
            defer { state.seen = stamp }
            return state.seen == stamp
        }
        if isReadable { reload(stamp) }
        warnOfExpiry()
    }

    private func reload(_ stamp: TLSFiles.Stamp) {
        do throws(RoomError) {
            let loaded = try Self.load(files)
            // Another change, while they were read.
            guard loaded.stamp == stamp else { return }
            state.withLock { $0 = State(loaded: loaded) }
            log.write(
                "TLS certificate replaced", ["expires": "\(ServerCertificate.day(loaded.certificate.expires))"],
                level: .notice)
            replaced(loaded.certificate)
        } catch {
            state.withLock { $0.refused = stamp }
            log.write("TLS certificate not replaced", ["error": "\(error)"], level: .warning)
        }
    }

    private func warnOfExpiry() {
        let now = now()
        let news = state.withLock { state -> (warning: String, expires: Double)? in
            let certificate = state.loaded.certificate
            guard certificate.daysLeft(now: now) < Self.warningDays else { return nil }
            let warning =
                certificate.expires < now ? "TLS certificate has expired" : "TLS certificate expires soon"
            guard warning != state.warning else { return nil }
            state.warning = warning
            return (warning, certificate.expires)
        }
        guard let news else { return }
        log.write(
            "\(news.warning)", ["file": "\(files.certificate)", "expires": "\(ServerCertificate.day(news.expires))"],
            level: .warning)
    }

    private static func load(_ files: TLSFiles) throws(RoomError) -> Loaded {
        let stamp = TLSFiles.Stamp(of: files)
        let chain: [NIOSSLCertificate]
        let key: NIOSSLPrivateKey
        do throws(PEMProblem) {
            chain = try PEMFile.certificates(files.certificate)
        } catch {
            throw refusal(
                "The certificate file \(files.certificate) \(error.text). Give it the server's certificate and those between "
                    + "it and its authority.")
        }
        do throws(PEMProblem) {
            key = try PEMFile.key(files.key)
        } catch {
            throw refusal("The key file \(files.key) \(error.text). Give it the certificate's private key.")
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        configuration.shutdownTimeout = shutdownTimeout
        do {
            let context = try NIOSSLContext(configuration: configuration)
            return Loaded(context: context, certificate: ServerCertificate(chain[0]), stamp: stamp)
        } catch {
            throw refusal(
                "The key in \(files.key) does not belong to the first certificate in \(files.certificate). Give both of one "
                    + "certificate.")
        }
    }

    private static func refusal(_ sentence: String) -> RoomError { RoomError(.certificateUnreadable, sentence) }
}
