/// The codes beyond those of authors of nodes; docs/errors.md explains them.
extension MediaError.Code {
    /// The setting cannot change while its node runs.
    public static let settingFixed = "graph.setting-fixed"
    /// This node cannot use the value, or cannot combine it with another.
    public static let settingUnusable = "graph.setting-unusable"
    /// New nodes of an edit delivered nothing in time.
    public static let editFailed = "graph.edit-failed"
    /// A GStreamer element is not installed.
    public static let elementMissing = "element.missing"
    /// The installed GStreamer element lacks a property or value that a node sets.
    public static let elementProperty = "element.property"
    /// The file does not exist.
    public static let fileNotFound = "file.not-found"
    /// The file has no video.
    public static let fileNoVideo = "file.no-video"
    /// The file cannot be read or decoded.
    public static let fileUnreadable = "file.unreadable"
    /// The disk of an output file is full.
    public static let fileFull = "file.full"
    /// A file cannot be written at the given path.
    public static let fileUnwritable = "file.unwritable"
    /// Two nodes would write one file by different paths, or one would write a file that another node or process reads.
    public static let fileConflict = "file.conflict"
    /// A recording is empty, lacks a stream, an HLS segment or its end, or one of its streams ends early.
    public static let recordingIncomplete = "recording.incomplete"
    /// The camera does not exist.
    public static let cameraAbsent = "camera.absent"
    /// Another program, or another node, captures from the camera.
    public static let cameraBusy = "camera.busy"
    /// The camera was unplugged, failed or fell silent.
    public static let cameraLost = "camera.lost"
    /// The camera sends frames that no decoder reads.
    public static let cameraUndecodable = "camera.undecodable"
    /// The device captures no video.
    public static let cameraUnusable = "camera.unusable"
    /// The camera delivers no frames, or damaged ones only.
    public static let cameraSilent = "camera.silent"
    /// The camera has no suitable mode.
    public static let cameraNoMode = "camera.no-mode"
    /// The camera has no such control, or the control rejects the value.
    public static let cameraControl = "camera.control"
    /// This user may not open the camera.
    public static let cameraDenied = "camera.denied"
    /// The source of the camera, such as a computer at a grabber, has another size or timing.
    public static let cameraChanged = "camera.changed"
    /// The bus has no room for the camera's mode beside those of other devices.
    public static let cameraBandwidth = "camera.bandwidth"
    /// A call of the camera's driver failed.
    public static let cameraFailed = "camera.failed"
    /// The file of a recorded camera is unreadable.
    public static let cameraFixture = "camera.fixture"
    /// A name for a camera is impossible or leads to no camera, or the file of names cannot be read or written.
    public static let cameraBinding = "camera.binding"
    /// The application has passed no frame to `LocalMedia.videoSource` for 5 s.
    public static let bypassSilent = "bypass.silent"
    /// The microphone does not exist, or its name fits several.
    public static let microphoneAbsent = "microphone.absent"
    /// Another program uses the microphone.
    public static let microphoneBusy = "microphone.busy"
    /// The microphone or its sound server failed.
    public static let microphoneLost = "microphone.lost"
    /// The loudspeaker does not exist, its name fits several, or no sound system responds.
    public static let speakerAbsent = "speaker.absent"
    /// Another program uses the loudspeaker.
    public static let speakerBusy = "speaker.busy"
    /// The loudspeaker or its sound server failed.
    public static let speakerLost = "speaker.lost"
    /// The X display cannot be opened, or PipeWire or its node does not respond.
    public static let screenUnavailable = "screen.unavailable"
    /// No window has the given title or number.
    public static let screenNoWindow = "screen.no-window"
    /// The region lies outside the screen.
    public static let screenBadRegion = "screen.bad-region"
    /// The window closed, its X server ended, or the screen stopped delivering frames.
    public static let screenLost = "screen.lost"
    /// Nobody chose a screen in the dialog of the desktop.
    public static let screenRefused = "screen.refused"
    /// The address of a network camera is invalid.
    public static let rtspBadAddress = "rtsp.bad-address"
    /// The network camera does not exist, refuses, or does not respond.
    public static let rtspUnreachable = "rtsp.unreachable"
    /// The network camera requires a user and password, or rejects them.
    public static let rtspUnauthorized = "rtsp.unauthorized"
    /// The network camera has no stream at this path.
    public static let rtspNotFound = "rtsp.not-found"
    /// The network camera refused for another reason, which the message names.
    public static let rtspRefused = "rtsp.refused"
    /// The network camera sends no video or audio of a known codec, or of the promised one.
    public static let rtspNoStream = "rtsp.no-stream"
    /// The network camera ended the stream or stopped sending.
    public static let rtspLost = "rtsp.lost"
    /// A window has no display to open on.
    public static let windowUnavailable = "window.unavailable"
    /// The window was closed, or its X server ended.
    public static let windowClosed = "window.closed"
    /// A pipeline did not start in time.
    public static let pipelineStalled = "pipeline.stalled"
    /// A node of a program or plugin did not return within one second of cancellation and was abandoned.
    public static let nodeStuck = "node.stuck"
    /// A capturer sent a timestamp more than one second from now, from another clock than CLOCK_MONOTONIC; or its
    /// timestamps go back, and arrival times replace them.
    public static let nodeTime = "node.time"
    /// The handle of a node is part of another pipeline, which has not stopped, or would share its live settings with a
    /// node there.
    public static let nodeInUse = "node.in-use"
    /// A handle was used that is in no pipeline, was removed from it, or was left out of it as optional.
    public static let nodeNotRunning = "node.not-running"
    /// Another kind of node has this name.
    public static let nodeNameTaken = "node.name-taken"
    /// A pipeline was edited before it started, or while it was paused.
    public static let pipelineNotRunning = "pipeline.not-running"
    /// A pipeline was used after it stopped, or stopped while it started or was edited.
    public static let pipelineStopped = "pipeline.stopped"
}
