/// A kind of node that brings media into a graph.
///
///     struct Bars: Capturer {
///         static let summary = "Bars that move"
///         @Setting("Pictures per second", in: 1...60, unit: "frames/s") var fps = 30
///
///         func format() -> PictureFormat { PictureFormat(width: 640, height: 360, framesPerSecond: Double(fps)) }
///
///         func capture(into output: CaptureOutput<PictureFormat>) async throws {
///             while true { try await output.draw { picture in … } }
///         }
///     }
///
/// `capture` runs on a thread of its own: it may block there, in a device's library say, as long as it looks at
/// `Task.isCancelled` often enough to leave within 50 ms when the graph stops. Whatever it throws ends the node in
/// these words; throw a `MediaError` with a code of your own. Returning is the end of the stream.
public protocol Capturer: WrittenNode {
    associatedtype Format: CaptureFormat

    /// What it gives with its settings as they are. Asked while the graph is planned: look at the device and throw what
    /// is in the way, but do not open it for good.
    func format() throws -> Format

    /// Gives media until its task is cancelled.
    func capture(into output: CaptureOutput<Format>) async throws
}

/// A kind of node that changes pictures where they lie.
public protocol Processor: WrittenNode {
    /// Changes one picture; always I420. Called on a streaming thread, in order: return soon, and never block there.
    mutating func process(_ picture: inout MutableVideoFrame) throws
}

/// A kind of node that media ends in.
public protocol Renderer: WrittenNode {
    /// `VideoFrame` or `AudioChunk`.
    associatedtype Media: RenderedMedia

    /// Takes media until there is no more, or its task is cancelled. What comes while it is busy waits for a moment, and
    /// then the oldest is dropped. Runs on a thread of its own, which it may block.
    func render(_ media: RenderStream<Media>) async throws
}

/// What a renderer takes.
public protocol RenderedMedia: Sendable {
    static var port: Port { get }
}

extension VideoFrame: RenderedMedia {
    public static var port: Port { Port("in", [.rawVideo], encodings: ["I420"]) }
}

extension AudioChunk: RenderedMedia {
    public static var port: Port { Port("in", [.rawAudio]) }
}

/// What comes to a renderer, in order.
public struct RenderStream<Media: RenderedMedia>: AsyncSequence, Sendable {
    private let stream: AsyncStream<Media>

    public init(_ stream: AsyncStream<Media>) {
        self.stream = stream
    }

    public func makeAsyncIterator() -> AsyncStream<Media>.Iterator { stream.makeAsyncIterator() }
}
