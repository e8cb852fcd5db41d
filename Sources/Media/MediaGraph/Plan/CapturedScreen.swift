/// What a screen node would capture: a display of X11, one of its windows, or a node of PipeWire.
public struct CapturedScreen: Sendable, Codable, Hashable {
    /// The X display, such as `:0`; empty for a node of PipeWire.
    public let display: String
    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// Of a node of PipeWire that tells; X tells none.
    public let framesPerSecond: Double?
    /// The number of the window; nil for the whole display.
    public let window: UInt?
    /// The title of the window.
    public let title: String?
    /// What else fitted the description, or is worth knowing, one sentence each.
    public let notes: [String]

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

/// A camera that was chosen, and those that were passed over for it.
public struct CameraChoice: Sendable, Hashable {
    public let camera: CameraDevice
    /// One sentence each, with the reason.
    public let passedOver: [String]

    public init(_ camera: CameraDevice, passedOver: [String] = []) {
        self.camera = camera
        self.passedOver = passedOver
    }
}

/// The sound system that a microphone is read through.
@frozen
public enum SoundSystem: String, Sendable, Hashable, Codable, CaseIterable {
    case pulse
    case pipewire
    case alsa
}
