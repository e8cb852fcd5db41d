/// A kind of node that is made of GStreamer elements, as a value.
///
///     ElementsNode(
///         "desktop-region", "A part of the desktop with a text over it",
///         elements: [
///             .init("ximagesrc", as: "screen", ["use-damage": false]), "videoconvert",
///             .init("textoverlay", as: "caption"),
///         ],
///         exposing: ["left": "screen.startx", "top": "screen.starty", "text": "caption.text"],
///         gives: .rawVideo())
///
/// What may be set is read off the elements: range, default, explanation, and whether it may change while it runs.
public struct ElementsNode: Sendable {
    /// One of the elements. One with neither a name nor properties of its own may be written as a text: `"videoconvert"`.
    public struct Element: Sendable, Hashable, ExpressibleByStringLiteral {
        public let factory: String
        /// Unique within the node; the factory's name where none is given.
        public let name: String
        public let properties: [String: SettingValue]

        public init(_ factory: String, as name: String? = nil, _ properties: [String: SettingValue] = [:]) {
            self.factory = factory
            self.name = name ?? factory
            self.properties = properties
        }

        public init(stringLiteral factory: String) {
            self.init(factory)
        }
    }

    public let name: String
    public let summary: String
    public let elements: [Element]
    /// Pads by name, as in `mixer.sink_0`; an element alone stands for its only pad.
    public let links: [(from: String, to: String)]
    /// Settings of the node, each with the property that it is: `"left": "screen.startx"`.
    public let exposed: [String: String]
    /// What comes in, at the first element: nothing for a capturer.
    public let takes: MediaFormat?
    /// What goes out, at the last element: nothing for a renderer. A raw picture's or sound's format is insisted on; what is
    /// nil of it settles when media comes.
    public let gives: MediaFormat?

    /// Elements are linked in their order, unless links are given.
    public init(
        _ name: String, _ summary: String, elements: [Element], links: [(from: String, to: String)]? = nil,
        exposing exposed: [String: String] = [:], takes: MediaFormat? = nil, gives: MediaFormat? = nil
    ) {
        self.name = name
        self.summary = summary
        self.elements = elements
        self.links = links ?? zip(elements, elements.dropFirst()).map { ($0.name, $1.name) }
        self.exposed = exposed
        self.takes = takes
        self.gives = gives
    }

    public var group: NodeGroup {
        switch (takes, gives) {
        case (nil, _): .capturer
        case (_, nil): .renderer
        default: .processor
        }
    }
}
