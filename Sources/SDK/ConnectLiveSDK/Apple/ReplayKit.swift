internal import Dispatch
public import Foundation
public import MediaNodes
internal import Synchronization

// The part of ReplayKit with which code for iOS extends an application to share a screen. (Linux)

/// The kind of a sample buffer. The raw values are Apple's.
public enum RPSampleBufferType: Int, Sendable {
    /// A frame of the screen.
    case video = 1
    /// Never on Linux.
    case audioApp = 2
    /// Never on Linux.
    case audioMic = 3
}

/// A program that captures a screen. A subclass with `@main` is the whole program: it captures a screen, and passes each frame to `processSampleBuffer`, which passes it to a `ScreenShare`.
///
///     @main final class ScreenExtension: RPBroadcastSampleHandler { … }
///
/// Its functions are called one after the other, on a queue of the program. SIGTSTP pauses the broadcast, and SIGCONT resumes it.
/// The program ends at SIGTERM or Ctrl-C, after `finishBroadcastWithError`, and when the source ends.
open class RPBroadcastSampleHandler: NSObject {
    private struct State {
        var error: (any Error)?
        /// The choice of the source, and its capture.
        var work: Task<Void, any Error>?
    }

    private let state = Mutex(State())

    public required override init() {}

    /// Makes the node whose frames are passed on: the X display of the environment, or without one, and in a Wayland session, a screen
    /// that the user chooses in a dialog of the desktop. Override it to capture a window, a region, or something else. (Linux)
    ///
    /// - Throws: the reason why there is no source, which ends the program: `screen.refused` if the user chose none.
    open func makeSource() async throws -> any MediaNode {
        let environment = ProcessInfo.processInfo.environment
        let isX = environment["DISPLAY"] != nil && environment["WAYLAND_DISPLAY"] == nil
        return isX ? Screen(framesPerSecond: 15) : Screen(try await SharedScreen.choose(), framesPerSecond: 15)
    }

    /// Create the `ScreenShare` here, and start it.
    open func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {}
    /// The user has paused the broadcast by SIGTSTP (Ctrl-Z). No frame follows until `broadcastResumed`. Pause the `ScreenShare`
    /// here. The program itself keeps running.
    open func broadcastPaused() {}
    /// The user has resumed the broadcast by SIGCONT. Resume the `ScreenShare` here.
    open func broadcastResumed() {}
    /// Stop the `ScreenShare` here, and wait until it has stopped. The program ends when this returns.
    open func broadcastFinished() {}
    /// Receives each frame of the screen. Pass it to `ScreenShare.sendVideoFrame`.
    open func processSampleBuffer(_ sampleBuffer: SampleBuffer, with sampleBufferType: RPSampleBufferType) {}

    /// Prints the error, and ends the program with status 1. Callable on any thread.
    open func finishBroadcastWithError(_ error: any Error) {
        let work = state.withLock { state in
            if state.error == nil { state.error = error }
            return state.work
        }
        work?.cancel()
    }

    /// The program.
    public class func main() async {
        let handler = Served(self.init())
        let failure = await handler.run()
        if let failure { FileHandle.standardError.write(Data("\(failure)\n".utf8)) }
        // A cancelled start may still look for the screen; exit handlers would destroy objects that it uses.
        fflush(nil)
        _exit(failure == nil ? 0 : 1)
    }

    /// Calls a handler, one call after the other.
    private final class Served: @unchecked Sendable {
        // Sendable by hand: the handler is called on the queue alone.
        private let handler: RPBroadcastSampleHandler
        private let queue = DispatchQueue(label: "sdk.broadcast")
        /// On the queue.
        private var isPaused = false

        init(_ handler: sending RPBroadcastSampleHandler) { self.handler = handler }

        /// Runs until a signal, the end of the source, or an error, which it returns.
        func run() async -> String? {
            queue.sync { handler.broadcastStarted(withSetupInfo: nil) }
            let pauses = [follow(SIGTSTP, isPausing: true), follow(SIGCONT, isPausing: false)]
            defer { for source in pauses { source.cancel() } }
            let work = Task { [self] in
                let source = try await handler.makeSource()
                let pipeline = try await MediaPipeline { source >>> Frames { [self] frame in pass(frame) } }
                try await pipeline.run(handlesSignals: false)
            }
            let hasEnded = handler.state.withLock { state in
                state.work = work
                return state.error != nil
            }
            if hasEnded { work.cancel() }
            let signals = TerminationSignals()
            let listening = Task {
                await signals.wait()
                work.cancel()
            }
            let problem = await Self.problem(of: work)
            listening.cancel()
            queue.sync { handler.broadcastFinished() }
            return handler.state.withLock { $0.error }.map(Self.words) ?? problem
        }

        /// Calls the handler when a signal pauses or resumes the broadcast.
        private func follow(_ number: Int32, isPausing: Bool) -> any DispatchSourceSignal {
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { [self] in
                guard isPaused != isPausing else { return }
                isPaused = isPausing
                if isPausing { handler.broadcastPaused() } else { handler.broadcastResumed() }
            }
            source.resume()
            return source
        }

        /// The sentence about a failure. Nil for an end that somebody wanted, also in the dialog of the desktop.
        private static func problem(of work: Task<Void, any Error>) async -> String? {
            do {
                try await work.value
                return nil
            } catch {
                let isWanted = work.isCancelled || (error as? MediaError)?.code == MediaError.Code.screenRefused
                return isWanted ? nil : "\(error)"
            }
        }

        /// The sentence that code for iOS puts into an error, if it does.
        private static func words(_ error: any Error) -> String {
            let error = error as NSError
            return error.localizedFailureReason ?? error.localizedDescription
        }

        private func pass(_ frame: VideoFrame) {
            guard let picture = PixelBuffer(frame) else { return }
            let sample = SampleBuffer(imageBuffer: picture, presentationTimeStamp: frame.captureTime)
            queue.sync { if !isPaused { handler.processSampleBuffer(sample, with: .video) } }
        }
    }
}
