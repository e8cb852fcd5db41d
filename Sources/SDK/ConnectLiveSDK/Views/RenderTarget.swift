internal import Dispatch
internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The implementation of a render view, separate from the class that applications may subclass. For any thread.
final class RenderTarget: Sendable {
    /// Where frames go, besides the program.
    struct Output: Sendable {
        var window: TiledWindow?
        var screen: TerminalScreen?
        var terminal: FileHandle?
        var imagePath: String?

        static let none = Output()

        /// Throws `window.unavailable`.
        static func window(_ title: String, _ width: Int, _ height: Int) throws -> Output {
            do throws(MediaError) {
                return Output(window: try TiledWindow(title: title, width: width, height: height))
            } catch {
                throw ConnectLiveError(RoomError(error))
            }
        }

        static func terminal(_ handle: FileHandle) -> Output {
            Output(screen: TerminalScreen(descriptor: handle.fileDescriptor), terminal: handle)
        }

        /// Throws `file.unwritable`.
        static func image(_ path: String) throws -> Output {
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue,
                FileManager.default.isWritableFile(atPath: folder)
            else {
                let error = MediaError(
                    code: MediaError.Code.fileUnwritable,
                    message:
                        "The image \(path) cannot be written: \(folder) is not a writable folder. Choose another path.")
                throw ConnectLiveError(RoomError(error))
            }
            return Output(imagePath: path)
        }
    }

    /// How many frames may wait. Then the oldest is dropped.
    private static let capacity = 8

    private struct State {
        var onFrame: (@Sendable (VideoFrame) -> Void)?
        var onError: (@Sendable (ConnectLiveError) -> Void)?
        var onActive: Callback<Bool>?
        var activity = ViewActivity()
        /// Whether a check of the activity is scheduled.
        var isChecked = false
        var fit = FrameFit.whole
        var isHidden = false
        var waiting: [VideoFrame] = []
        var isScheduled = false
        var dropped = 0
        var latest: VideoFrame?
        var imagePath: String?
        var detach: (@Sendable () -> Void)?
    }

    let uuid = UUID().uuidString
    private let state: Mutex<State>
    private let output: Output
    private let queue: DispatchQueue

    init(_ output: Output) {
        self.output = output
        queue = DispatchQueue(label: "connectlive.view")
        state = Mutex(State(imagePath: output.imagePath))
        output.window?.addTile(uuid)
    }

    deinit {
        let output = output
        guard output.window != nil || output.screen != nil else { return }
        Task.detached {
            await output.window?.close()
            output.screen?.close()
        }
    }

    var onFrame: (@Sendable (VideoFrame) -> Void)? {
        get { state.withLock { $0.onFrame } }
        set { state.withLock { $0.onFrame = newValue } }
    }

    var onError: (@Sendable (ConnectLiveError) -> Void)? {
        get { state.withLock { $0.onError } }
        set { state.withLock { $0.onError = newValue } }
    }

    var onActive: Callback<Bool>? {
        get { state.withLock { $0.onActive } }
        set { state.withLock { $0.onActive = newValue } }
    }

    /// Whether the window or terminal shows nothing.
    var isHidden: Bool {
        get { state.withLock { $0.isHidden } }
        set {
            let isChanged = state.withLock { state in
                defer { state.isHidden = newValue }
                return state.isHidden != newValue
            }
            guard isChanged, let window = output.window else { return }
            if newValue {
                window.removeTile(uuid)
            } else {
                window.addTile(uuid)
                window.setFit(state.withLock { $0.fit }, of: uuid)
            }
        }
    }

    var droppedFrames: Int { state.withLock { $0.dropped } }
    var latestFrame: VideoFrame? { state.withLock { $0.latest } }
    var isAttached: Bool { state.withLock { $0.detach != nil } }

    func setFit(_ mode: UIView.ContentMode) {
        let fit: FrameFit =
            switch mode {
            case .scaleAspectFill: .filling
            case .scaleToFill: .stretched
            default: .whole
            }
        state.withLock { $0.fit = fit }
        output.window?.setFit(fit, of: uuid)
        output.screen?.fit = fit
    }

    /// Detaches from the previous video, and keeps the function that detaches from this one.
    func attached(detach: @escaping @Sendable () -> Void) {
        let previous = state.withLock { state in
            if state.activity.end() { state.onActive?(false) }
            defer { state.detach = detach }
            return state.detach
        }
        previous?()
    }

    func detached() {
        state.withLock { state in
            state.detach = nil
            if state.activity.end() { state.onActive?(false) }
        }
    }

    /// Called on a GStreamer thread.
    func show(_ frame: VideoFrame) {
        let (mustCheck, isHidden, mustSchedule) = state.withLock { state -> (Bool, Bool, Bool) in
            state.latest = frame
            // A frame may still come from a video that was detached.
            let isNew = state.detach != nil && state.activity.frame(at: Self.now)
            // Queued under the lock, so that the calls keep their order.
            if isNew { state.onActive?(true) }
            let mustCheck = isNew && !state.isChecked
            state.isChecked = state.isChecked || isNew
            guard state.onFrame != nil || state.imagePath != nil else { return (mustCheck, state.isHidden, false) }
            state.waiting.append(frame)
            if state.waiting.count > Self.capacity {
                state.waiting.removeFirst()
                state.dropped += 1
            }
            defer { state.isScheduled = true }
            return (mustCheck, state.isHidden, !state.isScheduled)
        }
        if !isHidden {
            output.window?.show(frame, in: uuid)
            output.screen?.show(frame)
        }
        if mustCheck { check(after: ViewActivity.silence) }
        if mustSchedule { queue.async { self.drain() } }
    }

    private static var now: Duration { .nanoseconds(Int64(DispatchTime.now().uptimeNanoseconds)) }

    private func check(after time: Duration) {
        let (seconds, attoseconds) = time.components
        let delay = Double(seconds) + Double(attoseconds) * 1e-18
        DispatchQueue.global().asyncAfter(deadline: .now() + delay) { [weak self] in self?.check() }
    }

    private func check() {
        let next = state.withLock { state -> Duration? in
            let wasActive = state.activity.isActive
            let next = state.activity.check(at: Self.now)
            if wasActive, next == nil { state.onActive?(false) }
            state.isChecked = next != nil
            return next
        }
        if let next { check(after: next) }
    }

    private func drain() {
        while true {
            let (frame, handler, path) = state.withLock {
                state -> (VideoFrame?, (@Sendable (VideoFrame) -> Void)?, String?) in
                guard !state.waiting.isEmpty else {
                    state.isScheduled = false
                    return (nil, nil, nil)
                }
                defer { state.imagePath = nil }
                return (state.waiting.removeFirst(), state.onFrame, state.imagePath)
            }
            guard let frame else { return }
            if let path { write(frame, to: path) }
            handler?(frame)
        }
    }

    private func write(_ frame: VideoFrame, to path: String) {
        do throws(MediaError) {
            try FrameImage.write(frame, to: path)
        } catch {
            onError?(ConnectLiveError(RoomError(error)))
        }
    }
}
