import Glibc

/// The folder for the sockets of this user's graphs: `$XDG_RUNTIME_DIR/connectlive`, or `/tmp/connectlive-UID` if that folder
/// does not exist.
package enum RuntimeFolder {
    package static var path: String {
        if let runtime = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), runtime.hasPrefix("/"),
            access(runtime, F_OK) == 0
        {
            return "\(runtime)/connectlive"
        }
        return "/tmp/connectlive-\(getuid())"
    }

    /// Creates the folder with mode 0700. One that other users can enter is refused: they could place their own sockets there.
    ///
    /// - Returns: why it cannot be used, as a clause. Nil if it can.
    package static func make() -> String? {
        let path = path
        if mkdir(path, 0o700) != 0, errno != EEXIST { return String(cString: strerror(errno)).lowercased() }
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return "it is not a folder" }
        guard status.st_uid == getuid() else { return "it belongs to another user" }
        return status.st_mode & 0o077 == 0 || chmod(path, 0o700) == 0 ? nil : "other users can enter it"
    }
}
