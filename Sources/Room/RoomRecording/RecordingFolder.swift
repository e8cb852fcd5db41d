internal import Foundation
package import Logging
internal import MediaGraph
package import RoomProtocol
package import ServerCore
internal import Synchronization

/// The folder in which a server records: a Matroska file for each stream. Callable on any thread.
package final class RecordingFolder: StreamRecorder {
    /// The most recordings at once. Each has a thread and a few file descriptors.
    package static let limit = 100
    /// How long `finish` waits.
    package static let finishTime = 5.0

    private struct State {
        var count = 0
        /// Of the present recordings.
        var clock = RecordingClock()
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    package let path: String
    private let limit: Int
    private let log: Logger
    private let state = Mutex(State())

    /// Checks that files can be created there. Creates the folder if it does not exist.
    package init(_ path: String, limit: Int = RecordingFolder.limit, log: Logger) throws(RoomError) {
        (self.path, self.limit, self.log) = (path, limit, log)
        func unusable(_ reason: String) -> RoomError {
            RoomError(
                .recordingUnavailable,
                "The folder \(path) cannot be used for recordings: \(reason). Choose another.")
        }
        do {
            // Recordings are for their owner and group alone.
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o750])
        } catch {
            throw unusable(String(cString: strerror(Self.cause(of: error))))
        }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw unusable("it is not a folder")
        }
        guard access(path, W_OK | X_OK) == 0 else { throw unusable(String(cString: strerror(errno))) }
        do throws(MediaError) {
            try RecordingPipeline.check()
        } catch {
            throw RoomError(.recordingUnavailable, error.message)
        }
    }

    private static func cause(of error: any Error) -> Int32 {
        let error = error as NSError
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
        return cause.domain == NSPOSIXErrorDomain ? Int32(cause.code) : ENOTDIR
    }

    /// How many recordings are being written.
    package var count: Int { state.withLock { $0.count } }

    package func begin(
        _ stream: RecordedStream, failed: @escaping @Sendable (RoomError) -> Void
    ) throws(RoomError) -> any RecordingSink {
        let clock: RecordingClock? = state.withLock { state in
            guard state.count < limit else { return nil }
            // A step of the machine's clock moves no file against another of the same time.
            if state.count == 0 { state.clock = RecordingClock() }
            state.count += 1
            return state.clock
        }
        guard let clock else {
            throw RoomError(
                .recordingUnavailable,
                "The server makes \(limit) recordings, which is the limit. The streams go on without a recording.")
        }
        return RecordingFile(stream, in: path, clock: clock, log: log, failed: failed) { [self] in ended() }
    }

    private func ended() {
        let done = state.withLock { state in
            state.count -= 1
            guard state.count == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in done { waiter.resume() }
    }

    /// Waits until the recordings that have ended are written, `finishTime` at most.
    package func finish() async {
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.finishTime) { [self] in
            let late = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            if !late.isEmpty { log.warning("recordings not finished", metadata: ["count": "\(count)"]) }
            for waiter in late { waiter.resume() }
        }
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.count > 0 { state.waiting.append(continuation) }
                return state.count == 0
            }
            if isDone { continuation.resume() }
        }
    }
}
