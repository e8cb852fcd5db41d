internal import Foundation
internal import NIOCore
internal import NIOPosix

/// The service manager that started this process, such as systemd: receives the state and signs of life (sd_notify(3)).
struct ServiceManager: Sendable {
    private let channel: any Channel
    /// The manager ends the process if no sign of life arrives for this time. Nil if it expects none.
    let watchdog: Duration?

    /// Returns nil if no manager waits for the state (NOTIFY_SOCKET), or if it cannot be reached.
    static func connect(
        _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) async -> ServiceManager? {
        guard let name = environment["NOTIFY_SOCKET"], name.hasPrefix("/") || name.hasPrefix("@") else { return nil }
        // NIO appends zeros to an abstract address (unix(7)), and so means another socket.
        if name.hasPrefix("@") {
            Console.error(
                "The service manager's socket \(name) has no path, so it does not learn the state. Set NOTIFY_SOCKET to a path, "
                    + "or use Type=simple.")
            return nil
        }
        let bootstrap = DatagramBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        guard let channel = try? await bootstrap.connect(unixDomainSocketPath: name).get() else {
            Console.error("The service manager's socket \(name) cannot be reached, so it does not learn the state.")
            return nil
        }
        return ServiceManager(channel: channel, watchdog: watchdog(environment))
    }

    private static func watchdog(_ environment: [String: String]) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        // Another process may be meant.
        guard environment["WATCHDOG_PID"].map({ $0 == "\(getpid())" }) ?? true else { return nil }
        return .microseconds(microseconds)
    }

    func ready() async { await send("READY=1") }

    func stopping() async { await send("STOPPING=1") }

    func isAlive() async { await send("WATCHDOG=1") }

    /// One line for `systemctl status`.
    func status(_ text: String) async { await send("STATUS=\(text.printable)") }

    /// For a manager that does not read: its queue has room for a few messages only.
    private static let limit = TimeAmount.milliseconds(500)

    /// A lost message is harmless: the next one follows, and a manager that ended starts no watchdog. A manager that does
    /// not read holds nothing up for long.
    private func send(_ assignment: String) async {
        guard channel.isWritable else { return }
        let sent = channel.eventLoop.makePromise(of: Void.self)
        channel.writeAndFlush(ByteBuffer(string: assignment)).cascade(to: sent)
        channel.eventLoop.scheduleTask(in: Self.limit) { sent.succeed() }
        try? await sent.futureResult.get()
    }
}
