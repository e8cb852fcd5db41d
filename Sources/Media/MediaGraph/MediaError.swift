/// An error of capture, processing, encoding or rendering: bad input, a device, a missing element. Bugs trap instead.
///
/// `code` is stable and listed in docs/errors.md; `message` is one sentence for people.
public struct MediaError: Error, Sendable, CustomStringConvertible {
    /// A short dotted name such as `file.no-video`.
    public let code: String
    /// One sentence with the cause and the fix.
    public let message: String
    /// The message of the underlying error, such as GStreamer's.
    public let cause: String?
    /// The node with the error; nil for an error of the whole graph.
    public let node: String?

    public init(code: String, message: String, cause: String? = nil, node: String? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
        self.node = node
    }

    public var description: String { "\(message) [\(code)]" }
}

/// The codes of `MediaError`; docs/errors.md explains them.
extension MediaError {
    public enum Code {
        public static let graphInvalid = "graph.invalid"
        public static let formatClash = "graph.format-clash"
        public static let settingFixed = "graph.setting-fixed"
        public static let settingUnusable = "graph.setting-unusable"
        public static let editFailed = "graph.edit-failed"
        public static let elementMissing = "element.missing"
        public static let elementFailed = "element.failed"
        public static let elementProperty = "element.property"
        public static let fileNotFound = "file.not-found"
        public static let fileNoVideo = "file.no-video"
        public static let fileUnreadable = "file.unreadable"
        public static let fileFull = "file.full"
        public static let fileUnwritable = "file.unwritable"
        public static let fileConflict = "file.conflict"
        public static let recordingIncomplete = "recording.incomplete"
        public static let cameraAbsent = "camera.absent"
        public static let cameraBusy = "camera.busy"
        public static let cameraLost = "camera.lost"
        public static let cameraSilent = "camera.silent"
        public static let cameraNoMode = "camera.no-mode"
        public static let cameraControl = "camera.control"
        public static let microphoneAbsent = "microphone.absent"
        public static let microphoneBusy = "microphone.busy"
        public static let microphoneLost = "microphone.lost"
        public static let speakerAbsent = "speaker.absent"
        public static let screenUnavailable = "screen.unavailable"
        public static let screenNoWindow = "screen.no-window"
        public static let screenBadRegion = "screen.bad-region"
        public static let screenLost = "screen.lost"
        public static let rtspBadAddress = "rtsp.bad-address"
        public static let rtspUnreachable = "rtsp.unreachable"
        public static let rtspUnauthorized = "rtsp.unauthorized"
        public static let rtspNotFound = "rtsp.not-found"
        public static let rtspRefused = "rtsp.refused"
        public static let rtspNoStream = "rtsp.no-stream"
        public static let rtspLost = "rtsp.lost"
        public static let windowUnavailable = "window.unavailable"
        public static let windowClosed = "window.closed"
        public static let pipelineStalled = "pipeline.stalled"
        public static let nodeFailed = "node.failed"
        public static let nodeStuck = "node.stuck"
        public static let nodeFlood = "node.flood"
        public static let nodeFormat = "node.format"
        public static let nodeTime = "node.time"
        public static let nodeNameTaken = "node.name-taken"
        public static let pipelineStopped = "pipeline.stopped"
    }
}
