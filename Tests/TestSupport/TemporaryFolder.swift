import Foundation

/// A folder for this user alone. It is removed with the value.
public final class TemporaryFolder {
    public let path: String

    public init() {
        var template = Array((FileManager.default.temporaryDirectory.path + "/connectlive-XXXXXX").utf8CString)
        guard let made = mkdtemp(&template) else {
            preconditionFailure(
                "A folder in \(FileManager.default.temporaryDirectory.path) cannot be created: \(errno).")
        }
        path = String(cString: made)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    public func file(_ name: String) -> String { path + "/" + name }
}
