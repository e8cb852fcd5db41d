internal import ChildProcesses
internal import Dispatch
internal import Foundation
internal import FrameSocket
internal import RoomProtocol
internal import Synchronization

/// The running program of an extension. It ends with this process. Callable on any thread.
final class ShareExtension: Sendable {
    private struct State {
        var child: ChildProcess?
        var watch: ReadSource?
        var ending: ChildProcess.Ending?
        /// Called once the program has ended.
        var waiting: [@Sendable () -> Void] = []
    }

    private let queue = DispatchQueue(label: "sdk.screen-extension")
    private let state = Mutex(State())

    /// The program of an extension: a path, or a name, which is looked for beside the application and then in `PATH`.
    static func find(_ name: String) throws(RoomError) -> String {
        let beside = Bundle.main.executableURL?.deletingLastPathComponent().path
        let places = name.contains("/") ? [name] : [beside.map { "\($0)/\(name)" }, name].compactMap(\.self)
        guard let path = places.firstNonNil({ ProgramSearch.find($0) }) else {
            throw RoomError(
                .extensionMissing,
                "There is no program \(name.prefix(256)) to share a screen. Install it beside the application or in a folder of "
                    + "PATH, or name its path.")
        }
        return path
    }

    /// Starts the program. Its output is that of this process.
    ///
    /// - Parameter ended: called once, on a queue, with how the program has ended.
    init(
        _ path: String, in group: ShareGroup, ended: @escaping @Sendable (ChildProcess.Ending) -> Void
    ) throws(RoomError) {
        let environment = [FrameFeed.environmentVariable: group.socket, ShareGroup.environmentVariable: group.name]
        let child: ChildProcess
        do throws(ChildProcess.Failure) {
            child = try ChildProcess(
                path: path, arguments: [],
                environment: ChildProcess.inheritedEnvironment.merging(environment) { $1 },
                descriptors: [nil, STDOUT_FILENO, STDERR_FILENO])
        } catch {
            throw RoomError(
                .extensionMissing, "The program \(path) cannot be started: \(error.reason). Check that it runs by hand."
            )
        }
        let watch = ReadSource(child.endDescriptor, of: child, on: queue) { [weak self] in
            guard let self, let ending = finish(child.ended) else { return }
            ended(ending)
        }
        state.withLock { ($0.child, $0.watch) = (child, watch) }
    }

    /// Returns how the program has ended, the first time.
    private func finish(_ ending: ChildProcess.Ending?) -> ChildProcess.Ending? {
        let (waiting, watch) = state.withLock { state -> ([@Sendable () -> Void]?, ReadSource?) in
            guard let ending, state.ending == nil else { return (nil, nil) }
            state.ending = ending
            defer { (state.waiting, state.watch, state.child) = ([], nil, nil) }
            return (state.waiting, state.watch)
        }
        watch?.cancel()
        guard let waiting else { return nil }
        for done in waiting { done() }
        return ending
    }

    /// Waits until the program has ended: by itself within the time for its cleanup, then by SIGTERM and SIGKILL.
    func end(grace: Double = 3, patience: Double = 2) async {
        let timers = [(grace, false), (grace + patience, true)]
        for (seconds, kills) in timers {
            queue.asyncAfter(deadline: .now() + seconds) { [weak self] in
                let child = self?.state.withLock { $0.child }
                if kills { child?.kill() } else { child?.askToEnd() }
            }
        }
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if state.ending == nil { state.waiting.append { continuation.resume() } }
                return state.ending != nil
            }
            if hasEnded { continuation.resume() }
        }
    }
}
