// `reader` is a source that is never changed, and Dispatch does not declare DispatchSourceRead as Sendable.
@preconcurrency import Dispatch
import Glibc
import Synchronization

/// Ctrl-C (SIGINT), SIGTERM and SIGHUP for the waits that they end, such as that of a pipeline. While there is one, the first
/// signal goes to all of them, and a second one ends the process, except SIGHUP: when a terminal closes, its shell and the
/// kernel both send it. Before and after, signals have the effect that the program chose.
///
/// Dispatch's own signal sources would take effect some time later, and would not restore that effect.
package final class TerminationSignals: Sendable {
    private struct State {
        var listeners: [ObjectIdentifier: AsyncStream<Void>.Continuation] = [:]
        var former: [Int32: sigaction] = [:]
        /// Whether the first signal has come.
        var isEnding = false
    }

    private static let state = Mutex(State())
    /// Reads the signals, from the first use to the end of the process.
    private static let reader: (any DispatchSourceRead)? = {
        guard signalPipe.output >= 0 else { return nil }
        let source = DispatchSource.makeReadSource(
            fileDescriptor: signalPipe.output, queue: DispatchQueue(label: "media.signals"))
        source.setEventHandler {
            var number: UInt8 = 0
            while read(signalPipe.output, &number, 1) == 1 { deliver(Int32(number)) }
        }
        source.resume()
        return source
    }()

    private let stream: AsyncStream<Void>

    /// - Parameter staysIgnored: whether a signal that the program ignores stays ignored.
    package init(staysIgnored: (Int32) -> Bool = { _ in true }) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.stream = stream
        // A process without free descriptors keeps its signals.
        guard Self.reader != nil else { return }
        let id = ObjectIdentifier(self)
        Self.state.withLock { state in
            if state.listeners.isEmpty { state.former = Self.install(staysIgnored) }
            state.listeners[id] = continuation
            // The process is ending already.
            if state.isEnding { continuation.yield() }
        }
    }

    deinit {
        let id = ObjectIdentifier(self)
        Self.state.withLock { state in
            state.listeners[id] = nil
            guard state.listeners.isEmpty else { return }
            for (number, var action) in state.former { sigaction(number, &action, nil) }
            (state.former, state.isEnding) = ([:], false)
        }
    }

    /// Returns at the first signal, or when the task is cancelled.
    package func wait() async { for await _ in stream { return } }

    /// Returns the former actions.
    private static func install(_ staysIgnored: (Int32) -> Bool) -> [Int32: sigaction] {
        var former: [Int32: sigaction] = [:]
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var action = sigaction()
            sigaction(number, nil, &action)
            let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            if handler == unsafeBitCast(SIG_IGN, to: Int.self), staysIgnored(number) { continue }
            former[number] = action
            action = sigaction()
            action.sa_flags = SA_RESTART
            action.__sigaction_handler.sa_handler = { number in
                let reason = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(signalPipe.input, &byte, 1)
                errno = reason
            }
            sigaction(number, &action, nil)
        }
        return former
    }

    private static func deliver(_ number: Int32) {
        let (listeners, isSecond) = state.withLock { state in
            defer { state.isEnding = !state.listeners.isEmpty }
            return (Array(state.listeners.values), state.isEnding)
        }
        // The last one has stopped meanwhile.
        if listeners.isEmpty { kill(getpid(), number) }
        if isSecond, number != SIGHUP { exit(130) }
        for listener in listeners { listener.yield() }
    }
}

/// Where the handler writes the signals. A constant, because the handler may interrupt any code.
private let signalPipe: (output: Int32, input: Int32) = {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return (-1, -1) }
    for end in ends {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    return (ends[0], ends[1])
}()
