internal import Foundation
internal import Glibc
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
    /// The part of it after which it gives up files that the disk does not take, so that there is time for their reports.
    private static let writeTime = 4.0

    private struct State {
        var files: [RecordingFile] = []
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    package let path: String
    private let limit: Int
    private let settings: RecordingSettings
    private let log: Logger
    private let state = Mutex(State())

    /// Checks that files can be created there. Creates the folder if it does not exist.
    package convenience init(_ path: String, limit: Int = RecordingFolder.limit, log: Logger) throws(RoomError) {
        try self.init(path, limit: limit, settings: RecordingSettings(), log: log)
    }

    init(
        _ path: String, limit: Int = RecordingFolder.limit, settings: RecordingSettings, log: Logger
    ) throws(RoomError) {
        (self.path, self.limit, self.settings, self.log) = (path, limit, settings, log)
        func unusable(_ reason: String) -> RoomError {
            RoomError(
                .recordingUnavailable,
                "The folder \(path) cannot be used for recordings: \(reason). Choose another.")
        }
        if let (folder, cause) = Self.failure(toMake: path) {
            let reason = String(cString: strerror(cause))
            throw unusable(folder.map { "\($0): \(reason)" } ?? reason)
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

    /// Makes the folder and those above it as far as they are missing, for their owner and group alone. Returns the one
    /// above that cannot be made, if it is one of those, and the reason, which FileManager does not tell.
    private static func failure(toMake path: String) -> (folder: String?, cause: Int32)? {
        var folder = path.hasPrefix("/") ? "" : "."
        let parts = path.split(separator: "/")
        for (index, part) in parts.enumerated() {
            folder += "/\(part)"
            if mkdir(folder, 0o750) != 0, errno != EEXIST { return (index + 1 < parts.count ? folder : nil, errno) }
        }
        return nil
    }

    /// How many recordings are being written.
    package var count: Int { files.count }

    private var files: [RecordingFile] { state.withLock { $0.files } }

    package func begin(
        _ stream: RecordedStream, failed: @escaping @Sendable (RoomError) -> Void
    ) throws(RoomError) -> any RecordingSink {
        let file: RecordingFile? = state.withLock { state in
            guard state.files.count < limit else { return nil }
            // A step of the machine's clock moves no file of a participant against another one.
            let other = state.files.first { $0.stream.participant == stream.participant }
            let file = RecordingFile(
                stream, in: path, clock: other?.clock ?? settings.readClock(), settings: settings, log: log,
                failed: failed
            ) { [self] in ended($0) }
            state.files.append(file)
            return file
        }
        guard let file else { throw refusal }
        return file
    }

    private var refusal: RoomError {
        let blocked = files.count(where: \.isBlocked)
        let reason = blocked == 0 ? "" : "; \(blocked) of them have ended, and wait for its disk"
        return RoomError(
            .recordingUnavailable,
            "The server makes \(limit) recordings, which is the limit\(reason). The streams go on without a recording.")
    }

    private func ended(_ file: RecordingFile) {
        let done = state.withLock { state in
            state.files.removeAll { $0 === file }
            guard state.files.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in done { waiter.resume() }
    }

    /// Waits until the recordings that have ended are written, `finishTime` at most.
    package func finish() async {
        let ending = files
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.writeTime) { for file in ending { file.giveUp() } }
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
                if !state.files.isEmpty { state.waiting.append(continuation) }
                return state.files.isEmpty
            }
            if isDone { continuation.resume() }
        }
    }
}
