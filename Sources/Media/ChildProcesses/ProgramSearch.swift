internal import Glibc

/// Finds programs.
package enum ProgramSearch {
    /// The path of an executable program.
    package static func find(_ name: String) -> String? {
        find(name, path: getenv("PATH").map { String(cString: $0) })
    }

    /// The path of an executable program: the name itself if it has a slash, else in the folders of `path`.
    package static func find(_ name: String, path: String?) -> String? {
        guard !name.isEmpty else { return nil }
        if name.contains("/") { return isProgram(name) ? name : nil }
        return (path ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").lazy.map { "\($0)/\(name)" }
            .first(where: isProgram)
    }

    private static func isProgram(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}
