package import Cameras
import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

extension CapturedFrame: LentFrame {}

/// Reads an open camera on a thread of its own.
final class CameraCapture: Sendable {
    /// Called on the camera's thread, except for `notice`.
    struct Receiver: Sendable {
        let take: @Sendable (CapturedFrame, MediaTime) -> Void
        /// The camera has failed, and is closed.
        let fail: @Sendable (MediaError) -> Void
        /// Something that people should know of.
        let notice: @Sendable (String) -> Void
        /// The camera delivers so many frames in a second now.
        var pace: @Sendable (Double) -> Void = { _ in }
    }

    private typealias Job = @Sendable (CameraSession?) -> Void

    private struct State {
        var jobs: [Job] = []
        var isStarted = false
        var isStopped = false
        var hasLeft = false
        var history: CameraSession.History
        var pace: Double?
    }

    /// A wait without frames and events. It only limits how late the counts are.
    private static let wait = Duration.seconds(1)

    private let session: CameraSession
    private let receiver: Receiver
    private let answerLimit: Double
    private let state: Mutex<State>
    private let thread = DispatchQueue(label: "media.camera")
    /// A receiver of notices may block.
    private let notices = DispatchQueue(label: "media.camera.notices")
    private let end = DispatchGroup()

    /// - Parameter answerLimit: how long `set` waits for the driver, in seconds.
    init(_ session: CameraSession, _ receiver: Receiver, answerLimit: Double = 2) {
        (self.session, self.receiver, self.answerLimit) = (session, receiver, answerLimit)
        state = Mutex(State(history: session.history))
    }

    var history: CameraSession.History { state.withLock { $0.history } }

    var cameraName: String { session.place.name }

    var controls: [DeviceControl] { session.controls }

    /// Starts to stream. Blocks as long as the driver does.
    ///
    /// - Throws: `camera.busy`, `camera.bandwidth` and others of the driver. The camera is closed then.
    func start() throws(MediaError) {
        do throws(MediaError) {
            try session.start()
        } catch {
            state.withLock { ($0.hasLeft, $0.jobs) = (true, []) }
            session.close()
            throw error
        }
        state.withLock { $0.isStarted = true }
        end.enter()
        thread.async { self.run() }
    }

    /// Stops and closes the camera. Blocks as long as the driver does.
    func close() {
        let isStarted = state.withLock { state in
            state.isStopped = true
            return state.isStarted
        }
        guard isStarted else { return session.close() }
        session.waker.wake()
        end.wait()
    }

    /// Sets controls after those that were queued before. Does not block. Before the camera starts, they are set when it does,
    /// and a refused one becomes a notice. Does nothing after it has failed.
    ///
    /// - Returns: the answer to wait for. Nil before the camera starts, and after it has failed.
    func queue(_ values: ControlValues) -> ControlAnswer? {
        queue { session throws(MediaError) in try session.set(values) }
    }

    /// Gives controls the values that they had before the node set them, as `queue` does.
    func queueReset(_ names: [String]) -> ControlAnswer? {
        queue { session throws(MediaError) in try session.reset(names) }
    }

    private func queue(
        _ change: @escaping @Sendable (CameraSession) throws(MediaError) -> Void
    ) -> ControlAnswer? {
        // Retained by the job, which may come after the caller gave up.
        let answer = ControlAnswer()
        let isAwaited = state.withLock { state in
            guard !state.hasLeft else { return false }
            state.jobs.append { [receiver, notices, isStarted = state.isStarted] session in
                do throws(MediaError) {
                    if let session, !answer.isAbandoned.value { try change(session) }
                } catch {
                    answer.error.withLock { $0 = error }
                    if !isStarted { notices.async { receiver.notice(error.message) } }
                }
                answer.isDone.signal()
            }
            return state.isStarted
        }
        guard isAwaited else { return nil }
        session.waker.wake()
        return answer
    }

    /// - Throws: `camera.control`; `camera.silent` if the driver does not respond.
    func wait(for answer: ControlAnswer?) throws(MediaError) {
        guard let answer else { return }
        guard answer.isDone.wait(timeout: .now() + answerLimit) == .success else {
            answer.isAbandoned.raise()
            throw CameraNode.unresponsive(session.place.name)
        }
        if let error = answer.error.withLock({ $0 }) { throw error }
    }

    /// Whether `requestKeyframe` has an effect.
    var takesKeyframeRequests: Bool { session.takesKeyframeRequests }

    /// Asks a camera that encodes for a keyframe. Does not block.
    func requestKeyframe() {
        state.withLock { state in
            if state.isStarted, !state.hasLeft { state.jobs.append { session in session?.requestKeyframe() } }
        }
        session.waker.wake()
    }

    /// The driver's answer to controls.
    final class ControlAnswer: Sendable {
        fileprivate let error = Mutex<MediaError?>(nil)
        fileprivate let isDone = DispatchSemaphore(value: 0)
        /// Set when nobody waits for it any more: the caller has forgotten the values.
        fileprivate let isAbandoned = AtomicBool()
    }

    // MARK: The camera's thread

    private func run() {
        var failure: MediaError?
        while failure == nil {
            let (jobs, isStopped) = state.withLock { state in
                defer { state.jobs = [] }
                return (state.jobs, state.isStopped)
            }
            for job in jobs { job(session) }
            if isStopped { break }
            do throws(MediaError) {
                try read()
            } catch {
                failure = error
            }
        }
        session.close()
        let jobs = state.withLock { state in
            state.hasLeft = true
            return state.jobs
        }
        for job in jobs { job(nil) }
        end.leave()
        if let failure { receiver.fail(failure) }
    }

    private func read() throws(MediaError) {
        let item = try session.next(within: Self.wait)
        let (history, pace) = (session.history, session.pace)
        let hasNewPace = state.withLock { state in
            defer { (state.history, state.pace) = (history, pace) }
            return state.pace != pace
        }
        if let pace, hasNewPace { receiver.pace(pace) }
        switch item {
        case .frame(let frame, let time): receiver.take(frame, MediaTime(time))
        case .notice(let notice): notices.async { [receiver] in receiver.notice(notice.message) }
        case .woken, nil: break
        }
    }
}

/// Passes requests for keyframes to a camera that encodes, and warns once if it takes none.
final class KeyframeRequests: Sendable {
    private let hasWarned = AtomicBool()
    private let warn: @Sendable (String) -> Void
    /// A receiver of warnings may block, and a caller may hold a lock.
    private let warnings = DispatchQueue(label: "media.camera.warnings")

    init(_ warn: @escaping @Sendable (String) -> Void) { self.warn = warn }

    /// Any thread; does not block.
    func pass(to capture: CameraCapture?) {
        guard let capture else { return }
        if capture.takesKeyframeRequests { return capture.requestKeyframe() }
        guard !hasWarned.exchange(true) else { return }
        warnings.async { [warn] in
            warn(
                "The camera accepts no requests for keyframes, so a viewer that joins waits for its next one. Set a short "
                    + "interval between keyframes if it has a control for it.")
        }
    }
}

extension PushSource {
    /// Queues a camera's frame. Without a copy, if the driver has enough buffers left: a driver without buffers loses
    /// frames. With `isKept`, consumers may hold it for long, so it is copied.
    func push(_ frame: CapturedFrame, of layout: CaptureLayout, timestamp: UInt64, isKept: Bool = false) -> Bool {
        let planes = layout.colourPlanes(frame.lengths).map { ($0.offset, $0.stride) }
        let picture =
            planes.isEmpty
            ? nil
            : FramePlanes(
                layout.mode.name, width: layout.mode.size.width, height: layout.mode.size.height, planes)
        return push(frame, picture, timestamp: timestamp, isCopied: isKept || frame.spare < 2)
    }
}

extension MediaTime {
    init(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        self.init(nanoseconds: UInt64(max(seconds, 0)) * 1_000_000_000 + UInt64(max(attoseconds, 0) / 1_000_000_000))
    }
}
