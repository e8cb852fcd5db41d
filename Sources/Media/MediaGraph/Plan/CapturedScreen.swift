/// The source of a screen node: a display of X11, one of its windows, or a node of PipeWire.
public struct CapturedScreen: Sendable, Codable, Hashable {
    /// The X display, such as `:0`; empty for a node of PipeWire.
    public let display: String
    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// The frame rate of a PipeWire node that reports it; nil for X11.
    public let framesPerSecond: Double?
    /// The ID of the window; nil for the whole display.
    public let window: UInt?
    /// The title of the window.
    public let title: String?
    /// Other matches of the description and further remarks, one sentence each.
    public let notes: [String]

    /// A screen of this size in pixels.
    public init(
        display: String, width: Int, height: Int, framesPerSecond: Double? = nil, window: UInt? = nil,
        title: String? = nil, notes: [String] = []
    ) {
        self.display = display
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.window = window
        self.title = title
        self.notes = notes
    }
}
