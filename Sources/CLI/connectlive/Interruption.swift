// Dispatch on Linux does not declare its sources Sendable; they are only created and kept here.
@preconcurrency internal import Dispatch
internal import Foundation

/// Waits for Ctrl-C, SIGTERM or SIGHUP, so that a command can leave its room before it ends. A second signal ends the
/// process immediately, except SIGHUP: when a terminal closes, its shell and the kernel both send it. A SIGHUP that the
/// parent has ignored, as nohup does, stays ignored.
///
/// Dispatch on Linux replaces a signal's default action when the source is registered, which is some time after `resume`.
/// Until then a signal ends the process; ignoring it here, as is usual on other systems, would lose it.
final class Interruption: Sendable {
    private let sources: [any DispatchSourceSignal]
    private let stream: AsyncStream<Int32>

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingOldest(1))
        self.stream = stream
        let queue = DispatchQueue(label: "connectlive.signals")
        nonisolated(unsafe) var isSecond = false  // touched on `queue` alone
        sources = [SIGINT, SIGTERM, SIGHUP].filter { $0 != SIGHUP || !Self.isIgnored($0) }.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                if isSecond, number != SIGHUP { Foundation.exit(130) }
                isSecond = true
                continuation.yield(number)
            }
            source.resume()
            return source
        }
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        let handler = action.__sigaction_handler.sa_handler
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Returns at the first signal, or after `seconds`.
    func wait(seconds: Double?) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [stream] in for await _ in stream { return } }
            if let seconds {
                group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            }
            await group.next()
            group.cancelAll()
        }
    }
}
