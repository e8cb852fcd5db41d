internal import Dispatch
internal import Foundation
internal import FrameSocket
internal import MediaGraph
internal import Synchronization

/// A share over the frame socket (docs/frame-socket.md).
final class FrameSocketShare: ScreenShare {
    private struct State {
        var hasStarted = false
        /// While the application is connected.
        var feed: FrameFeed?
        /// Whether the extension has paused the share.
        var isPaused = false
        /// Whether the application knows that no frames come.
        var isResting = true
        /// When the last frame was sent, in nanoseconds.
        var lastFrame: UInt64 = 0
        var isStopped = false
        var isOver = false
        /// The completions of `stop`.
        var waiting: [Ending] = []
    }

    private typealias End = (code: ScreenShareData.ExtensionErrorCode, message: String)

    /// A closure of the extension, which may not be Sendable.
    private struct Ending: @unchecked Sendable {
        // Sendable by hand: it is called once, on the queue of the share.
        let call: () -> Void
    }

    /// Nanoseconds without a frame after which the application is told to expect none.
    private static let quiet: UInt64 = 1_000_000_000
    /// Seconds between two checks of the time and of `stop`.
    private static let interval = 0.1

    private let group: ShareGroup
    /// Callbacks.
    private let queue = DispatchQueue(label: "sdk.screen-share")
    private let state = Mutex(State())

    init(_ group: ShareGroup) { self.group = group }

    // MARK: - Start and end

    func start(completion: @escaping ErrorCallback) {
        let (isFirst, isStopped) = state.withLock { state in
            defer { state.hasStarted = true }
            return (!state.hasStarted, state.isStopped)
        }
        let failure = UncheckedFailure(completion)
        guard isFirst, !isStopped else {
            return queue.async { failure.call(.broadcastFailed, "This share was started before. Create another one.") }
        }
        Thread.detachNewThread { [self] in
            let end = run()
            let waiting = state.withLock { state in
                (state.feed, state.isOver) = (nil, true)
                defer { state.waiting = [] }
                return state.waiting
            }
            queue.async {
                if let end { failure.call(end.code, end.message) }
                for done in waiting { done.call() }
            }
        }
    }

    /// The callback of `start`.
    private struct UncheckedFailure: @unchecked Sendable {
        // Sendable by hand: it is called once, on the queue of the share.
        let call: ErrorCallback

        init(_ call: @escaping ErrorCallback) { self.call = call }
    }

    func stop(completion: @escaping () -> Void) {
        let done = Ending(call: completion)
        let (isOver, feed) = state.withLock { state in
            let isOver = state.isOver || !state.hasStarted
            state.isStopped = true
            if !isOver { state.waiting.append(done) }
            return (isOver, state.feed)
        }
        feed?.finish("the share has ended")
        if isOver { queue.async { done.call() } }
    }

    // MARK: - The connection

    /// Connects, and listens until the end. Returns nil after `stop`.
    private func run() -> End? {
        let feed: FrameFeed
        do throws(FrameSocketError) {
            feed = try connect()
            try feed.pause()
        } catch {
            return failed(error, unless: "feed.unavailable", .invalidData)
        }
        state.withLock { $0.feed = feed }
        do throws(FrameSocketError) {
            while true {
                for case .stop(let reason) in try feed.events(waiting: Self.interval) { return Self.end(reason) }
                if state.withLock({ $0.isStopped }) { return nil }
                try rest(feed)
            }
        } catch {
            return failed(error, unless: "feed.closed", .broadcastClosed)
        }
    }

    private func connect() throws(FrameSocketError) -> FrameFeed {
        let name = ProcessInfo.processInfo.processName
        guard ProcessInfo.processInfo.environment[FrameFeed.environmentVariable] == nil else {
            return try FrameFeed.fromEnvironment(name: name)
        }
        return try FrameFeed(socket: group.socket, name: name)
    }

    /// The end by an error, which is `usual` for one code. Nil after `stop`.
    private func failed(
        _ error: FrameSocketError, unless code: String, _ usual: ScreenShareData.ExtensionErrorCode
    ) -> End? {
        guard !state.withLock({ $0.isStopped }) else { return nil }
        return (error.code == code ? usual : .broadcastFailed, "\(error)")
    }

    private static func end(_ reason: StopReason) -> End {
        switch reason {
        case .ended: (.broadcastClosed, "The application no longer takes frames.")
        case .finished: (.stopBroadcast, "The application has ended the screen share.")
        case .meetingFinished: (.meetingFinished, "The application has left the room.")
        }
    }

    /// Tells the application when no frames come: it would take a screen that does not change for a lost one.
    private func rest(_ feed: FrameFeed) throws(FrameSocketError) {
        let isNews = state.withLock { state in
            guard !state.isResting, state.isPaused || FrameFeed.now > state.lastFrame + Self.quiet else { return false }
            state.isResting = true
            return true
        }
        if isNews { try feed.pause() }
    }

    // MARK: - Frames

    func pause() { state.withLock { $0.isPaused = true } }

    func resume() { state.withLock { $0.isPaused = false } }

    func sendVideoFrame(sampleBuffer: SampleBuffer) {
        guard let frame = sampleBuffer.imageBuffer else { return }
        let (feed, wasResting) = state.withLock { state -> (FrameFeed?, Bool) in
            guard let feed = state.feed, !state.isPaused, !state.isStopped else { return (nil, false) }
            state.lastFrame = FrameFeed.now
            defer { state.isResting = false }
            return (feed, state.isResting)
        }
        guard let feed else { return }
        do throws(FrameSocketError) {
            let format = frame.feedFormat
            if (format.encoding, format.width, format.height)
                != (feed.format.encoding, feed.format.width, feed.format.height)
            {
                try feed.change(to: format)
            }
            if wasResting { try feed.resume() }
            let time = sampleBuffer.presentationTimeStamp
            try feed.send(at: time.isValid ? time.nanoseconds : nil) { memory in
                frame.copy(to: &memory, format.planes)
            }
        } catch {
            // The thread that listens gets the same error, and reports it.
        }
    }
}

extension PixelBuffer {
    fileprivate var feedFormat: FrameFormat {
        let encoding: FrameFormat.Encoding =
            switch format {
            case .i420: .i420
            case .nv12: .nv12
            case .bgra: .bgra
            }
        return FrameFormat(encoding, width: width, height: height)
    }

    /// Copies the samples into planes without gaps between rows.
    fileprivate func copy(to memory: inout MutableRawSpan, _ planes: [FramePlane]) {
        for (plane, target) in zip(VideoPlane.allCases, planes) {
            withPlane(plane) { source, stride in target.copyRows(of: source, stride: stride, to: &memory) }
        }
    }
}
