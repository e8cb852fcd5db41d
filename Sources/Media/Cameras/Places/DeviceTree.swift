internal import Glibc

/// The kernel's tree of devices, sysfs. Tests use made-up ones.
package struct DeviceTree: Sendable, Hashable {
    /// The folder that is otherwise `/sys`.
    private let root: String

    package init(root: String) {
        self.root = root
    }

    package static let system = DeviceTree(root: "/sys")

    /// The names in a folder, in the order of their text. Empty if there is none.
    func entries(of folder: String) -> [String] {
        guard let directory = opendir("\(root)/\(folder)") else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = Cameras.text(of: entry.pointee.d_name)
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    /// A file's first line. Nil without such a file, and for an empty one.
    func text(_ file: String) -> String? {
        guard let bytes = bytes(file) else { return nil }
        let letters = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first.map(String.init)
        let trimmed = letters.map { String($0.drop { $0 == " " }) } ?? ""
        return trimmed.isEmpty ? nil : trimmed.cleaned
    }

    /// A file's bytes, at most 64 KiB. Nil without such a file.
    func bytes(_ file: String) -> [UInt8]? {
        let descriptor = open("\(root)/\(file)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var result: [UInt8] = []
        while result.count < 65_536 {
            var part = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &part, part.count)
            if count <= 0 { break }
            result += part[..<count]
        }
        return result
    }

    /// The folder that a link or a folder leads to, from the root on.
    func place(_ folder: String) -> String? {
        guard let start = realpath(root, nil), let end = realpath("\(root)/\(folder)", nil) else { return nil }
        defer {
            free(start)
            free(end)
        }
        let (first, place) = (String(cString: start), String(cString: end))
        return place.hasPrefix(first + "/") ? String(place.dropFirst(first.count + 1)) : nil
    }
}
