internal import CGStreamer

/// What a pad of an element is or can be. The corresponding C type is `GstPadTemplate`.
package struct PadTemplate: Sendable {
    package enum Direction: Sendable {
        case source
        case sink
    }

    package enum Presence: Sendable {
        case always
        /// Appears once the element knows what it has to give.
        case sometimes
        /// Is there when somebody asks for it.
        case onRequest
    }

    /// Such as `sink` or `sink_%u`.
    package let name: String
    package let direction: Direction
    package let presence: Presence
    package let caps: Caps

    init(name: String, _ direction: GstPadDirection, _ presence: GstPadPresence, _ caps: Caps) {
        self.name = name
        self.direction = direction == GST_PAD_SRC ? .source : .sink
        switch presence {
        case GST_PAD_SOMETIMES: self.presence = .sometimes
        case GST_PAD_REQUEST: self.presence = .onRequest
        default: self.presence = .always
        }
        self.caps = caps
    }
}
