internal import Foundation
internal import Glibc
package import MediaGraph

/// Names that a user gives to cameras, such as `front`, with preset controls: a file for each user.
package struct CameraBindings: Sendable, Hashable {
    /// The camera of a name. In the file it is a text, or an object if it has controls.
    package struct Binding: Sendable, Hashable {
        package let camera: String
        /// Set whenever the camera opens by this name, such as `brightness=90,auto_exposure=1`.
        package let controls: String?

        package init(_ camera: String, controls: String? = nil) {
            (self.camera, self.controls) = (camera, controls)
        }
    }

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
    package func all() throws(MediaError) -> [String: Binding] {
        guard FileManager.default.fileExists(atPath: file) else { return [:] }
        guard let data = FileManager.default.contents(atPath: file),
            let names = try? JSONDecoder().decode([String: Binding].self, from: data)
        else {
            throw Self.error(
                "The file \(file) with names of cameras is unreadable. Write {\"front\": \"serial:…\"} or {\"front\": "
                    + "{\"camera\": \"serial:…\", \"controls\": \"brightness=90\"}}, or remove it.")
        }
        return names
    }

    /// The binding of a name. Nil for another name.
    ///
    /// - Throws: `camera.binding` for an unreadable file, and for a name that leads to no camera.
    func binding(of name: String) throws(MediaError) -> Binding? {
        let names = try all()
        guard let binding = names[name] else { return nil }
        if binding.camera.isEmpty || names[binding.camera] != nil {
            let target = binding.camera.isEmpty ? "to nothing" : "to the name \(binding.camera)"
            throw Self.error(
                "The name \(name) leads \(target), not to a camera: \(file). Give it a camera with 'connectlive devices "
                    + "bind \(name) NAME'.")
        }
        return binding
    }

    /// Gives a camera a name, or removes the name if the binding is nil.
    ///
    /// - Returns: the binding that the name had before.
    /// - Throws: `camera.binding` for an impossible name, and if the file cannot be written; `camera.control` for controls
    ///   that are not names and numbers.
    @discardableResult
    package func bind(_ name: String, to binding: Binding?) throws(MediaError) -> Binding? {
        guard Self.isName(name) else {
            throw Self.error(
                "\"\(name)\" cannot be a camera's name. Use letters, digits and dashes, such as front, and not auto.")
        }
        _ = try ControlValues(binding?.controls ?? "")
        do {
            try FileManager.default.createDirectory(
                at: URL(fileURLWithPath: file).deletingLastPathComponent(), withIntermediateDirectories: true)
            return try withLock(of: file) { try replace(name, with: binding) }
        } catch let error as MediaError {
            throw error
        } catch {
            throw Self.error("The file \(file) cannot be written. Set XDG_CONFIG_HOME to a folder of your own.")
        }
    }

    private func replace(_ name: String, with binding: Binding?) throws -> Binding? {
        var names = try all()
        let former = names[name]
        if binding == nil, former == nil {
            throw Self.error(
                "No camera is named \(name)\(name.suggestion(among: names.keys)) 'connectlive devices' lists the names."
            )
        }
        names[name] = binding
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try write(String(decoding: try encoder.encode(names), as: UTF8.self), toFile: file)
        // Services of other users read the names, which are no secret.
        chmod(file, 0o644)
        return former
    }

    /// Whether a text is a possible name, which no other name of a camera is.
    package static func isName(_ text: String) -> Bool {
        text.wholeMatch(of: #/[A-Za-z][A-Za-z0-9-]*/#) != nil && text != "auto" && !text.hasPrefix("usb-")
    }

    private static func error(_ message: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraBinding, message: message)
    }
}

extension CameraBindings.Binding: CustomStringConvertible {
    package var description: String { camera + (controls.map { " with \($0)" } ?? "") }
}

extension CameraBindings.Binding: Codable {
    private enum Key: String, CodingKey {
        case camera
        case controls
    }

    package init(from decoder: any Decoder) throws {
        if let camera = try? decoder.singleValueContainer().decode(String.self) {
            self.init(camera)
        } else {
            let fields = try decoder.container(keyedBy: Key.self)
            self.init(
                try fields.decode(String.self, forKey: .camera),
                controls: try fields.decodeIfPresent(String.self, forKey: .controls))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        guard let controls else {
            var text = encoder.singleValueContainer()
            return try text.encode(camera)
        }
        var fields = encoder.container(keyedBy: Key.self)
        try fields.encode(camera, forKey: .camera)
        try fields.encode(controls, forKey: .controls)
    }
}
