internal import EmbeddedFiles

/// The web page's files.
enum WebPage {
    struct File {
        var contentType: String
        var bytes: [UInt8]
    }

    private static let contentTypes = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    ]

    /// Returns a file. `/` is the page. Only the page's own file types are served.
    static func file(at path: String) -> File? {
        let name = path == "/" ? "index.html" : String(path.dropFirst())
        guard let dot = name.lastIndex(of: "."),
            let contentType = contentTypes[String(name[name.index(after: dot)...])],
            let bytes = EmbeddedFiles.file(named: name)
        else { return nil }
        return File(contentType: contentType, bytes: bytes)
    }
}
