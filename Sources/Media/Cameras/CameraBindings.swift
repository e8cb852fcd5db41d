internal import Foundation

/// Names that a user gives to cameras, such as `front`: a file for each user.
package struct CameraBindings: Sendable, Hashable {
    /// The file's path.
    package let file: String

    package init(file: String) {
        self.file = file
    }

    /// `$XDG_CONFIG_HOME/connectlive/cameras.json`, or that in `~/.config`.
    package static var ofUser: CameraBindings {
        let environment = ProcessInfo.processInfo.environment
        let folder =
            if let config = environment["XDG_CONFIG_HOME"], config.hasPrefix("/") { config } else {
                (environment["HOME"] ?? "/") + "/.config"
            }
        return CameraBindings(file: folder + "/connectlive/cameras.json")
    }

    /// The names and their cameras. None without a file.
    ///
    /// - Throws: `camera.binding` for an unreadable file.
    package func all() throws(CaptureError) -> [String: String] {
        guard FileManager.default.fileExists(atPath: file) else { return [:] }
        guard let data = FileManager.default.contents(atPath: file),
            let names = try? JSONDecoder().decode([String: String].self, from: data)
        else {
            throw Self.error(
                "The file \(file) with names of cameras is unreadable. Write {\"front\": \"serial:…\"}, or remove it.")
        }
        return names
    }

    /// Gives a camera a name, or removes the name if the camera is nil.
    ///
    /// - Throws: `camera.binding` for an impossible name, and if the file cannot be written.
    package func bind(_ name: String, to camera: String?) throws(CaptureError) {
        guard Self.isName(name) else {
            throw Self.error(
                "\"\(name)\" cannot be a camera's name. Use letters, digits and dashes, such as front, and not auto.")
        }
        do {
            try FileManager.default.createDirectory(
                at: URL(fileURLWithPath: file).deletingLastPathComponent(), withIntermediateDirectories: true)
            try withLock(of: file) { try replace(name, with: camera) }
        } catch let error as CaptureError {
            throw error
        } catch {
            throw Self.error("The file \(file) cannot be written. Set XDG_CONFIG_HOME to a folder of your own.")
        }
    }

    private func replace(_ name: String, with camera: String?) throws {
        var names = try all()
        if camera == nil, names[name] == nil {
            throw Self.error("No camera is named \(name). 'connectlive devices' lists the names.")
        }
        names[name] = camera
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try write(String(decoding: try encoder.encode(names), as: UTF8.self), toFile: file)
    }

    /// Whether a text is a possible name, which no other name of a camera is.
    package static func isName(_ text: String) -> Bool {
        text.wholeMatch(of: #/[A-Za-z][A-Za-z0-9-]*/#) != nil && text != "auto" && !text.hasPrefix("usb-")
    }

    private static func error(_ message: String) -> CaptureError {
        CaptureError(code: CaptureError.Code.binding, call: "open", number: 0, message)
    }
}
