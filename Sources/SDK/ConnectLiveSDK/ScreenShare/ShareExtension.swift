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
        var waiting: [@Sendable (ChildProcess.Ending) -> Void] = []
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
        // Under the lock, so that a program that ends at once is not finished before.
        state.withLock { state in
            state.child = child
            state.watch = ReadSource(child.endDescriptor, of: child, on: queue) { [weak self] in
                guard let self, let ending = finish(child.ended) else { return }
                ended(ending)
            }
        }
    }

    /// Returns how the program has ended, the first time.
    private func finish(_ ending: ChildProcess.Ending?) -> ChildProcess.Ending? {
        guard let ending else { return nil }
        let former = state.withLock { state -> State? in
            guard state.ending == nil else { return nil }
            defer { state = State(ending: ending) }
            return state
        }
        guard let former else { return nil }
        former.watch?.cancel()
        for done in former.waiting { done(ending) }
        return ending
    }

    /// Waits until the program has ended: by itself within the time for its cleanup, then by SIGTERM and SIGKILL. Returns how.
    func end(grace: Double = 3, patience: Double = 2) async -> ChildProcess.Ending {
        for (seconds, kills) in [(grace, false), (grace + patience, true)] {
            queue.asyncAfter(deadline: .now() + seconds) { [weak self] in
                let child = self?.state.withLock { $0.child }
                if kills { child?.kill() } else { child?.askToEnd() }
            }
        }
        return await withCheckedContinuation { continuation in
            let ending = state.withLock { state in
                if state.ending == nil { state.waiting.append { continuation.resume(returning: $0) } }
                return state.ending
            }
            if let ending { continuation.resume(returning: ending) }
        }
    }
}
