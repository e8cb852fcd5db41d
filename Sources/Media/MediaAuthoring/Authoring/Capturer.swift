/// A source of frames or audio, written in Swift.
///
///     struct Bars: Capturer {
///         static let summary = "Moving bars"
///         @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
///
///         func format() -> PictureFormat { PictureFormat(width: 640, height: 360, framesPerSecond: Double(fps)) }
///
///         func capture(into output: CaptureOutput<PictureFormat>) async throws {
///             while true { try await output.draw { frame in … } }
///         }
///     }
///
/// `capture` has a thread of its own and may block it, for example in a device's library. Check `Task.isCancelled` often
/// enough to return within 50 ms after the graph stops. An error that it throws ends the node and is reported as it is:
/// throw a ``MediaError`` with a code of your own. Returning ends the stream.
public protocol Capturer: WrittenNode {
    /// The type of the output's format: raw frames, audio or encoded frames.
    associatedtype Format: CaptureFormat

    /// The format of the output with the current settings.
    ///
    /// The planner calls this before anything runs, on any thread. Query the device and throw if it cannot work, but do not
    /// keep it open.
    func format() throws -> Format

    /// Sends media to `output` until the task is cancelled.
    ///
    /// - Throws: an error that ends the node and is reported unchanged. `CancellationError` is none.
    func capture(into output: CaptureOutput<Format>) async throws
}

/// A node that changes raw frames in place, written in Swift.
///
/// It cannot change a frame's size or the frame rate. While it works, the upstream thread waits; the queue upstream then
/// drops its oldest frame.
public protocol Processor: WrittenNode {
    /// Changes one frame, which is always I420. Called for one frame after the other, on a streaming thread: return soon and
    /// never block. A thrown error ends the node.
    mutating func process(_ picture: inout MutableVideoFrame) throws
}

/// A node that consumes raw frames or audio, written in Swift.
public protocol Renderer: WrittenNode {
    /// The media that it consumes: ``VideoFrame`` or ``AudioChunk``.
    associatedtype Media: RenderedMedia

    /// Reads media until the stream ends or the task is cancelled: `for await frame in media { … }`.
    ///
    /// It has a thread of its own and may block it. Frames that arrive meanwhile wait in a short queue, which drops its
    /// oldest frame when it is full.
    ///
    /// - Throws: an error that ends the node and is reported unchanged. `CancellationError` is none.
    func render(_ media: RenderStream<Media>) async throws
}

/// The media that renderers consume: ``VideoFrame`` or ``AudioChunk``.
public protocol RenderedMedia: Sendable {
    /// The input port of every renderer of this media.
    static var port: Port { get }
}

extension VideoFrame: RenderedMedia {
    public static var port: Port { Port("in", [.rawVideo], encodings: ["I420"]) }
}

extension AudioChunk: RenderedMedia {
    public static var port: Port { Port("in", [.rawAudio]) }
}

/// The frames or audio buffers that arrive at a renderer, in order.
public struct RenderStream<Media: RenderedMedia>: AsyncSequence, Sendable {
    private let stream: AsyncStream<Media>

    /// The media of a stream, such as a test's.
    public init(_ stream: AsyncStream<Media>) {
        self.stream = stream
    }

    public func makeAsyncIterator() -> AsyncStream<Media>.Iterator { stream.makeAsyncIterator() }
}
