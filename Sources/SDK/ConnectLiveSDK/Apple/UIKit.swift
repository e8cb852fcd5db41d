public import Foundation

// The part of UIKit's views that code for iOS uses of a render view. (Linux)

/// The base class of `UIRenderView`. It draws nothing.
///
/// As on iOS, views belong to the main actor. Code in Swift 5 mode may also use them elsewhere.
@preconcurrency @MainActor open class UIView: Hashable {
    /// How contents fill a view of another shape. The raw values are UIKit's.
    public enum ContentMode: Int, Sendable {
        /// Fills the view, out of shape.
        case scaleToFill = 0
        /// Shows the whole frame, with borders.
        case scaleAspectFit = 1
        /// Fills the view, without two edges of the frame.
        case scaleAspectFill = 2
        /// Means `scaleAspectFit` here.
        case redraw = 3
        /// Means `scaleAspectFit` here.
        case center = 4
        /// Means `scaleAspectFit` here.
        case top = 5
        /// Means `scaleAspectFit` here.
        case bottom = 6
        /// Means `scaleAspectFit` here.
        case left = 7
        /// Means `scaleAspectFit` here.
        case right = 8
        /// Means `scaleAspectFit` here.
        case topLeft = 9
        /// Means `scaleAspectFit` here.
        case topRight = 10
        /// Means `scaleAspectFit` here.
        case bottomLeft = 11
        /// Means `scaleAspectFit` here.
        case bottomRight = 12
    }

    /// The place in the view above, for the layout of the application. A window keeps its size.
    open var frame: CGRect
    /// The size of `frame`, at 0, 0 unless the application has set another origin.
    open var bounds: CGRect {
        get { CGRect(origin: origin, size: frame.size) }
        set {
            origin = newValue.origin
            frame.size = newValue.size
        }
    }
    /// For the application, and see `UIRenderView.isHidden`.
    open var isHidden = false
    /// For the application: `UIRenderView.videoContentMode` is that of frames.
    open var contentMode = ContentMode.scaleToFill
    private var origin = CGPoint.zero

    /// A view with an empty frame.
    public init() { frame = .zero }

    /// A view at a place in the view above.
    public init(frame: CGRect) { self.frame = frame }

    /// Ignores the coder: there are no storyboards.
    public required init?(coder: NSCoder) { frame = .zero }

    /// Whether both are the same object.
    public nonisolated static func == (first: UIView, second: UIView) -> Bool { first === second }

    public nonisolated func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Apple's name of the direction of an interface.
public typealias UIInterfaceOrientation = InterfaceOrientation
