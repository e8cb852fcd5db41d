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
        var isStopped = false
        /// Why a frame could not be sent.
        var failure: FrameSocketError?
        var isOver = false
        /// The completions of `stop`.
        var waiting: [Callback<>] = []
    }

    private typealias End = (code: ScreenShareData.ExtensionErrorCode, message: String)

    /// Nanoseconds without a frame after which the application is told to expect none.
    private static let quiet: UInt64 = 1_000_000_000
    /// Seconds between two checks of the time and of `stop`.
    private static let interval = 0.1

    private let group: ShareGroup
    /// Callbacks.
    private let queue = DispatchQueue(label: "sdk.screen-share")
    private let state = Mutex(State())
    private let flow = Mutex(Flow())

    /// The state of the frames, as the application was told. Its lock is held while the application is told, so that the last message is true.
    private struct Flow {
        /// Whether it expects no frames.
        var isResting = true
        /// When the last frame was sent, in nanoseconds.
        var lastFrame: UInt64 = 0
    }

    init(_ group: ShareGroup) { self.group = group }

    // MARK: - Start and end

    func start(completion: @escaping ErrorCallback) {
        let (isFirst, isStopped) = state.withLock { state in
            defer { state.hasStarted = true }
            return (!state.hasStarted, state.isStopped)
        }
        let failure = Callback(completion, on: queue)
        guard isFirst, !isStopped else {
            return failure(.broadcastFailed, "This share was started before. Create another one.")
        }
        Thread.detachNewThread { [self] in
            let end = run()
            let waiting = state.withLock { state in
                (state.feed, state.isOver) = (nil, true)
                defer { state.waiting = [] }
                return state.waiting
            }
            if let end { failure(end.code, end.message) }
            for done in waiting { done() }
        }
    }

    func stop(completion: @escaping () -> Void) {
        let done = Callback(completion, on: queue)
        let (isOver, feed) = state.withLock { state in
            let isOver = state.isOver || !state.hasStarted
            state.isStopped = true
            if !isOver { state.waiting.append(done) }
            return (isOver, state.feed)
        }
        feed?.finish("the share has ended")
        if isOver { done() }
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
        let isStopped = state.withLock { state in
            state.feed = feed
            return state.isStopped
        }
        // `stop` came before it could tell the application.
        if isStopped { feed.finish("the share has ended") }
        do throws(FrameSocketError) {
            while true {
                for case .stop(let reason) in try feed.events(waiting: Self.interval) { return Self.end(reason) }
                let (isStopped, failure) = state.withLock { ($0.isStopped, $0.failure) }
                if isStopped { return nil }
                if let failure { throw failure }
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
        let isPaused = state.withLock { $0.isPaused }
        try flow.withLock { (flow) throws(FrameSocketError) in
            guard !flow.isResting, isPaused || FrameFeed.now > flow.lastFrame + Self.quiet else { return }
            flow.isResting = true
            try feed.pause()
        }
    }

    // MARK: - Frames

    func pause() { state.withLock { $0.isPaused = true } }

    func resume() { state.withLock { $0.isPaused = false } }

    func sendVideoFrame(sampleBuffer: SampleBuffer) {
        guard let frame = sampleBuffer.imageBuffer else { return }
        let feed = state.withLock { $0.isPaused || $0.isStopped ? nil : $0.feed }
        guard let feed else { return }
        do throws(FrameSocketError) {
            try flow.withLock { (flow) throws(FrameSocketError) in
                let format = frame.feedFormat
                try Self.settle(format, feed)
                if flow.isResting { try feed.resume() }
                (flow.isResting, flow.lastFrame) = (false, FrameFeed.now)
                let time = sampleBuffer.presentationTimeStamp
                try feed.send(at: time.isValid ? time.nanoseconds : nil) { frame.copy(to: &$0, format.planes) }
            }
        } catch {
            // The thread that listens reports it.
            state.withLock { $0.failure = error }
        }
    }

    /// Announces frames of another size or format.
    private static func settle(_ format: FrameFormat, _ feed: FrameFeed) throws(FrameSocketError) {
        let present = feed.format
        if (format.encoding, format.width, format.height) != (present.encoding, present.width, present.height) {
            try feed.change(to: format)
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
