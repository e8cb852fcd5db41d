internal import Dispatch
internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The implementation of a render view, separate from the class that applications may subclass. For any thread.
final class RenderTarget: Sendable {
    /// How many frames may wait. Then the oldest is dropped.
    private static let capacity = 8

    private struct State {
        var onFrame: (@Sendable (VideoFrame) -> Void)?
        var onError: (@Sendable (ConnectLiveError) -> Void)?
        var waiting: [VideoFrame] = []
        var isScheduled = false
        var dropped = 0
        var latest: VideoFrame?
        var imagePath: String?
        var detach: (@Sendable () -> Void)?
    }

    let uuid = UUID().uuidString
    private let state: Mutex<State>
    private let window: TiledWindow?
    private let queue: DispatchQueue

    init(window: TiledWindow?, imagePath: String?) {
        self.window = window
        queue = DispatchQueue(label: "connectlive.view")
        state = Mutex(State(imagePath: imagePath))
        window?.addTile(uuid)
    }

    deinit {
        guard let window else { return }
        Task.detached { await window.close() }
    }

    var onFrame: (@Sendable (VideoFrame) -> Void)? {
        get { state.withLock { $0.onFrame } }
        set { state.withLock { $0.onFrame = newValue } }
    }

    var onError: (@Sendable (ConnectLiveError) -> Void)? {
        get { state.withLock { $0.onError } }
        set { state.withLock { $0.onError = newValue } }
    }

    var droppedFrames: Int { state.withLock { $0.dropped } }
    var latestFrame: VideoFrame? { state.withLock { $0.latest } }
    var isAttached: Bool { state.withLock { $0.detach != nil } }

    /// Detaches from the previous video, and keeps the function that detaches from this one.
    func attached(detach: @escaping @Sendable () -> Void) {
        let previous = state.withLock { state in
            defer { state.detach = detach }
            return state.detach
        }
        previous?()
    }

    func detached() { state.withLock { $0.detach = nil } }

    /// Called on a GStreamer thread.
    func show(_ frame: VideoFrame) {
        window?.show(frame, in: uuid)
        let mustSchedule = state.withLock { state in
            state.latest = frame
            guard state.onFrame != nil || state.imagePath != nil else { return false }
            state.waiting.append(frame)
            if state.waiting.count > Self.capacity {
                state.waiting.removeFirst()
                state.dropped += 1
            }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule { queue.async { self.drain() } }
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
