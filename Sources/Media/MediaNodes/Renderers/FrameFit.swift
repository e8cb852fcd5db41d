/// How frames fill a place of another shape.
package enum FrameFit: Sendable, Hashable {
    /// The whole frame, with borders.
    case whole
    /// All of the place: two edges of the frame are cut off.
    case filling
    /// All of the place with the whole frame, whose shape changes.
    case stretched
}

/// A rectangle of a frame in pixels.
struct FramePart: Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
}
