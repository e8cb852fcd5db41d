public import Foundation

// The part of UIKit's views that code for iOS uses of a render view. (Linux)

/// The base class of `UIRenderView`. It draws nothing.
///
/// As on iOS, views belong to the main actor. Code in Swift 5 mode may also use them elsewhere.
@preconcurrency @MainActor open class UIView: Hashable {
    /// How contents fill a view of another shape. The raw values are UIKit's.
    public enum ContentMode: Int, Sendable {
        case scaleToFill = 0
        case scaleAspectFit = 1
        case scaleAspectFill = 2
        case redraw = 3
        case center = 4
        case top = 5
        case bottom = 6
        case left = 7
        case right = 8
        case topLeft = 9
        case topRight = 10
        case bottomLeft = 11
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

    public init() { frame = .zero }

    public init(frame: CGRect) { self.frame = frame }

    /// Ignores the coder: there are no storyboards.
    public required init?(coder: NSCoder) { frame = .zero }

    /// Whether both are the same object.
    public nonisolated static func == (first: UIView, second: UIView) -> Bool { first === second }

    public nonisolated func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

public typealias UIInterfaceOrientation = InterfaceOrientation
