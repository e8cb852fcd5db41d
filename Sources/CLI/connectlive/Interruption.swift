// Dispatch on Linux does not declare its sources Sendable; they are only created and kept here.
@preconcurrency internal import Dispatch
internal import Foundation

/// Waits for Ctrl-C, SIGTERM or SIGHUP, so that a command can leave its room before it ends. A second signal ends the
/// process immediately.
final class Interruption: Sendable {
    private let sources: [any DispatchSourceSignal]
    private let stream: AsyncStream<Int32>

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingOldest(1))
        self.stream = stream
        let queue = DispatchQueue(label: "connectlive.signals")
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            nonisolated(unsafe) var isSecond = false  // touched on `queue` alone
            source.setEventHandler {
                if isSecond { Foundation.exit(130) }
                isSecond = true
                continuation.yield(number)
            }
            source.resume()
            return source
        }
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
