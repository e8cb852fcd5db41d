import Foundation

/// A folder for this user alone. It is removed with the value.
public final class TemporaryFolder {
    public let path: String

    /// `parent` may be /dev/shm, which is memory, so that no disk delays the test.
    public init(in parent: String? = nil) {
        let parent = parent ?? FileManager.default.temporaryDirectory.path
        var template = Array("\(parent)/connectlive-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else {
            preconditionFailure("A folder in \(parent) cannot be created: \(errno).")
        }
        path = String(cString: made)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    public func file(_ name: String) -> String { path + "/" + name }
}
