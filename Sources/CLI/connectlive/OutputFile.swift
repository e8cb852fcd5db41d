internal import Foundation

/// Checks at the start that a file can be written at the end.
enum OutputFile {
    static func check(_ path: String) throws {
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
            throw CommandFailure(
                code: "file.unwritable", "Cannot write \(path): it is a folder. Name a file, which may be in it.")
        }
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard FileManager.default.isWritableFile(atPath: folder) else {
            throw CommandFailure(
                code: "file.unwritable",
                "Cannot write \(path): \(folder) is not a folder that you may write to. Choose another folder.")
        }
    }
}

extension Encodable {
    /// The value as JSON for people, with sorted keys.
    func prettyJSON() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }

    /// Writes the value to the file of `--report`.
    ///
    /// - Throws: `file.unwritable`.
    func writeJSON(to path: String) throws {
        let text = try prettyJSON() + "\n"
        do {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        } catch {
            throw CommandFailure(
                code: "file.unwritable",
                "Cannot write the report \(path): \(error.localizedDescription) Name a file in a folder that you may "
                    + "write to.")
        }
    }
}
