// Dispatch on Linux does not declare its sources Sendable; they are only created and kept here.
@preconcurrency internal import Dispatch
internal import Foundation

/// Waits for Ctrl-C, SIGTERM or SIGHUP, so that a command can leave its room before it ends. A second signal ends the
/// process immediately, except SIGHUP: when a terminal closes, its shell and the kernel both send it. A SIGHUP that the
/// parent has ignored, as nohup does, stays ignored.
///
/// Dispatch on Linux replaces a signal's default action when the source is registered, some time after `resume`. Until then a
/// signal would end the process, so the initializer waits for that.
final class Interruption: Sendable {
    private let sources: [any DispatchSourceSignal]
    private let stream: AsyncStream<Int32>

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingOldest(1))
        self.stream = stream
        let queue = DispatchQueue(label: "connectlive.signals")
        nonisolated(unsafe) var isSecond = false  // touched on `queue` alone
        let numbers = [SIGINT, SIGTERM, SIGHUP].filter { $0 != SIGHUP || Self.action(of: $0) != .ignored }
        sources = numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                if isSecond, number != SIGHUP { Foundation.exit(130) }
                isSecond = true
                continuation.yield(number)
            }
            source.resume()
            return source
        }
        let limit = ContinuousClock.now + .seconds(2)
        while numbers.contains(where: { Self.action(of: $0) != .handled }), .now < limit { usleep(100) }
    }

    private enum Action {
        case usual, ignored, handled
    }

    private static func action(of number: Int32) -> Action {
        var action = sigaction()
        sigaction(number, nil, &action)
        switch unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) {
        case unsafeBitCast(SIG_DFL, to: Int.self): return .usual
        case unsafeBitCast(SIG_IGN, to: Int.self): return .ignored
        default: return .handled
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
