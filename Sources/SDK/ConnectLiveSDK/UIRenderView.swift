internal import Dispatch
internal import Foundation
public import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A destination for a video's frames: the program, a window, an image file, or none.
///
/// Attach it to a `LocalVideo` or a `RemoteVideo`, which retains the destination until it is detached. It shows one
/// video at a time.
open class UIRenderView {
    /// The view's id.
    public var uuid: String { target.uuid }
    /// Whether the view is attached to a video.
    public var isAssignedStream: Bool { target.isAttached }

    /// Called with every frame, on a serial queue of the view. A slow function blocks nothing else: at most 8 frames
    /// wait, then the oldest is dropped and counted.
    public var onFrame: (@Sendable (VideoFrame) -> Void)? {
        get { target.onFrame }
        set { target.onFrame = newValue }
    }

    /// Called once, on the same queue, if the image file cannot be written. There is no retry.
    public var onError: (@Sendable (ConnectLiveError) -> Void)? {
        get { target.onError }
        set { target.onError = newValue }
    }

    /// Frames dropped because `onFrame` was too slow.
    public var droppedFrames: Int { target.droppedFrames }
    /// The newest frame.
    public var latestFrame: VideoFrame? { target.latestFrame }

    let target: RenderTarget

    /// A view without a display, for `onFrame` and `latestFrame`.
    public init() {
        target = RenderTarget(window: nil, imagePath: nil)
    }

    /// A window on the desktop. Throws `window.unavailable` without a display.
    public init(windowTitle title: String, width: Int = 960, height: Int = 540) throws {
        do throws(MediaError) {
            let window = try TiledWindow(title: title, width: width, height: height)
            target = RenderTarget(window: window, imagePath: nil)
        } catch {
            throw ConnectLiveError(RoomError(error))
        }
    }

    /// Writes the first frame to a PNG file. Throws `file.unwritable` if the path cannot be written; `onError` reports
    /// later failures.
    public init(imagePath: String) throws {
        try Self.requireFolder(of: imagePath)
        target = RenderTarget(window: nil, imagePath: imagePath)
    }

    private static func requireFolder(of path: String) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue,
            FileManager.default.isWritableFile(atPath: folder)
        else {
            let error = MediaError(
                code: MediaError.Code.fileUnwritable,
                message: "The image \(path) cannot be written: \(folder) is not a writable folder. Choose another path."
            )
            throw ConnectLiveError(RoomError(error))
        }
    }
}

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

/// The views of one video.
final class VideoOutlet: Sendable {
    let fanout: FrameFanout
    private let attached = Mutex<[(target: RenderTarget, sink: Int)]>([])

    init(fanout: FrameFanout) { self.fanout = fanout }

    func attach(_ view: UIRenderView) {
        let target = view.target
        detach(target)
        let sink = fanout.add { frame in target.show(frame) }
        attached.withLock { $0.append((target, sink)) }
        target.attached { [weak self] in self?.remove(target) }
    }

    func detach(_ target: RenderTarget) {
        if remove(target) { target.detached() }
    }

    func detachAll() {
        for entry in attached.withLock({ $0 }) { detach(entry.target) }
    }

    /// The views' ids, in order of attachment.
    var viewIDs: [String] { attached.withLock { $0.map(\.target.uuid) } }

    @discardableResult
    private func remove(_ target: RenderTarget) -> Bool {
        let sinks = attached.withLock { attached in
            defer { attached.removeAll { $0.target === target } }
            return attached.filter { $0.target === target }.map(\.sink)
        }
        for sink in sinks { fanout.remove(sink) }
        return !sinks.isEmpty
    }
}
