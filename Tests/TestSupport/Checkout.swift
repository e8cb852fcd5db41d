public import Foundation

/// The checkout of the project from which the tests were built.
public enum Checkout {
    public static let folder = URL(filePath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The path of the bundled clip.
    public static let clip = path("media/bigbuckbunny.mp4")

    /// The absolute path of a file or folder, given as a path from the root of the checkout.
    public static func path(_ path: String) -> String { folder.appending(path: path).path }

    public static func text(_ path: String) throws -> String {
        try String(contentsOf: folder.appending(path: path), encoding: .utf8)
    }
}
