/// A node around GStreamer elements.
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
/// Each exposed setting has its property's range, default and description, and states whether it can change while it runs.
public struct ElementsNode: Sendable {
    /// One element. Without a name or properties, write it as a string: `"videoconvert"`.
    public struct Element: Sendable, Hashable, ExpressibleByStringLiteral {
        /// The element's type, as `gst-inspect-1.0` lists it.
        public let factory: String
        /// A name that is unique within the node; by default the factory's.
        public let name: String
        /// Properties to set when the element is created.
        public let properties: [String: SettingValue]

        /// An element of a type, with the type's name unless it gets another one.
        public init(_ factory: String, as name: String? = nil, _ properties: [String: SettingValue] = [:]) {
            self.factory = factory
            self.name = name ?? factory
            self.properties = properties
        }

        public init(stringLiteral factory: String) {
            self.init(factory)
        }
    }

    /// The name of the kind, in YAML and messages.
    public let name: String
    /// A few words about the node, for `connectlive nodes`.
    public let summary: String
    /// The elements, in the order of their creation.
    public let elements: [Element]
    /// Links between pads, such as `mixer.sink_0`; an element's name alone means its only pad.
    public let links: [(from: String, to: String)]
    /// Each setting's name, and the property that it sets: `"left": "screen.startx"`.
    public let exposed: [String: String]
    /// The format at the first element's input; nil for a capturer.
    public let takes: MediaFormat?
    /// The format at the last element's output; nil for a renderer. A raw format is enforced; parts of it that are nil are
    /// negotiated when media arrives.
    public let gives: MediaFormat?

    /// Links the elements in order unless `links` is given.
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
}
