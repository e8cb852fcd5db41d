internal import Glibc
public import MediaAuthoring
import Synchronization

/// Loads shared libraries with nodes. They stay loaded until the process ends, because the runtime may still refer to
/// their types.
public enum PluginLoader {
    /// The prefix of a plugin's entry. The name of its module follows.
    static let entryPrefix = "connectlive_plugin_"
    private static let mediaLibrary = "libMediaAuthoring.so"
    private static let largest = 512 << 20

    /// Serializes loading. Has the path of each loaded plugin, by its entry.
    private static let loaded = Mutex<[String: String]>([:])

    /// The nodes of a plugin: of a shared library, or of the folder of a built package.
    ///
    /// Throws `plugin.not-found`, `plugin.unreadable` for a file that is not a complete library, `plugin.not-a-plugin`,
    /// `plugin.incompatible` for one that was built against another MediaAuthoring or with another compiler, and
    /// `plugin.loaded` for one that is already loaded. No code of it runs before the file has been checked. `onChoice`
    /// receives a sentence about the choice if a folder has several files.
    public static func load(
        _ path: String, onChoice: ((String) -> Void)? = nil
    ) throws(MediaError) -> [CustomNode] {
        let (path, others) = try library(at: path)
        if let other = others.first { onChoice?("Loading \(path), which is newer than \(other).") }
        let image = try read(path)
        let entries = image.defined.filter { $0.hasPrefix(entryPrefix) }
        guard let entry = entries.first, entries.count == 1, image.needed.contains(mediaLibrary) else {
            let lack =
                entries.count > 1
                ? "it has \(entries.count) entries"
                : entries.isEmpty
                    ? "it has no function \(entryPrefix)<Module>" : "it does not use the shared \(mediaLibrary)"
            throw fault(
                notAPlugin, "\(path) is a shared library but not a plugin: \(lack). See docs/writing-a-capturer.md.")
        }
        return try loaded.withLock { (loaded) throws(MediaError) -> [CustomNode] in
            if let other = loaded[entry] {
                throw fault(
                    alreadyLoaded,
                    "\(path) has the plugin \(entry.dropFirst(entryPrefix.count)), which was already loaded from "
                        + "\(other). Leave one of them out.")
            }
            let nodes = try open(path, image, entry)
            loaded[entry] = path
            return nodes
        }
    }

    /// The plugins of a folder: every `.so` file in it, by name, except MediaAuthoring itself, which a built plugin has
    /// beside it; every package in it; or the folder itself if it is a package.
    ///
    /// Throws `plugin.not-found` for a folder that cannot be opened.
    public static func plugins(in folder: String) throws(MediaError) -> [String] {
        if isPackage(folder) { return [folder] }
        guard let files = entries(of: folder) else {
            throw fault(
                notFound, "The folder \(folder) of plugins cannot be opened: \(String(cString: strerror(errno))).")
        }
        return files.filter { isLibrary($0) || isPackage($0) }
    }

    private static func isPackage(_ folder: String) -> Bool { access("\(folder)/Package.swift", F_OK) == 0 }

    private static func isLibrary(_ file: String) -> Bool {
        file.hasSuffix(".so") && !file.hasSuffix("/\(mediaLibrary)")
    }

    /// The contents of a folder, by name. Nil if it cannot be opened; errno has the reason.
    private static func entries(of folder: String) -> [String]? {
        guard let directory = opendir(folder) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append("\(folder)/\(name)") }
        }
        return names.sorted()
    }

    // MARK: The file

    /// The library for a path, and the rejected ones: for a package, the newest build. Plugins of other packages are
    /// beside its own, which its manifest names.
    package static func library(at path: String) throws(MediaError) -> (chosen: String, others: [String]) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw fault(notFound, "The plugin \(path) does not exist. Name a .so file, or the folder of its package.")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return (path, []) }
        let built = ["debug", "release"].flatMap { entries(of: "\(path)/.build/\($0)") ?? [] }.filter(isLibrary)
        let found = built.filter { file in
            (try? read(file))?.defined.contains { $0.hasPrefix(entryPrefix) } ?? false
        }
        let names = products(of: path)
        let own = found.filter { file in names.contains { file.hasSuffix("/lib\($0).so") } }
        let newestFirst = (own.isEmpty ? found : own).sorted { modified($0) > modified($1) }
        guard let newest = newestFirst.first else {
            throw fault(notFound, "\(path) has no built plugin. Run \"swift build\" in it first, or name a .so file.")
        }
        return (newest, Array(newestFirst.dropFirst()))
    }

    /// The modification time of a file, in nanoseconds.
    private static func modified(_ file: String) -> Int {
        var status = stat()
        guard stat(file, &status) == 0 else { return 0 }
        return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
    }

    /// The libraries in a package's manifest, if they are stated literally.
    private static func products(of package: String) -> [String] {
        guard let bytes = try? contents(of: "\(package)/Package.swift") else { return [] }
        let manifest = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        return manifest.split(separator: ".library(name:\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
    }

    private static func contents(of path: String) throws(MediaError) -> [UInt8] {
        guard let file = fopen(path, "rb") else {
            let reason = String(cString: strerror(errno))
            throw fault(unreadable, "\(path) cannot be read: \(reason). Check its permissions.")
        }
        defer { fclose(file) }
        fseek(file, 0, SEEK_END)
        let size = ftell(file)
        rewind(file)
        guard size > 0, size <= largest else {
            throw fault(
                unreadable, "\(path) is not a shared library: it has \(max(size, 0)) bytes. Build or copy it again.")
        }
        return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = fread(buffer.baseAddress, 1, size, file)
        }
    }

    private static func read(_ path: String) throws(MediaError) -> ELFImage {
        let bytes = try contents(of: path)
        do throws(ELFImage.Fault) {
            return try ELFImage(bytes)
        } catch {
            throw fault(unreadable, "\(path) \(error.rawValue).")
        }
    }

    // MARK: The library

    private static func open(
        _ path: String, _ image: ELFImage, _ entry: String
    ) throws(MediaError) -> [CustomNode] {
        guard let ours = dlsym(nil, "connectlive_media_place") else {
            throw fault(
                incompatible,
                "\(path) cannot be loaded: this program contains MediaAuthoring statically and loads no plugins.")
        }
        // Loaded libraries take precedence over those beside the plugin.
        for name in image.needed { _ = dlopen(name, RTLD_LAZY | RTLD_LOCAL) }
        guard let handle = dlopen(path.contains("/") ? path : "./\(path)", RTLD_NOW | RTLD_LOCAL) else {
            throw refused(path, dlerror().map { String(cString: $0) } ?? "")
        }
        guard dlsym(handle, "connectlive_media_place") == ours else {
            throw fault(
                incompatible,
                "\(path) contains its own MediaAuthoring. Link the shared product MediaAuthoring of the plugin kit, and build "
                    + "it again.")
        }
        guard let function = dlsym(handle, entry) else {
            throw fault(notAPlugin, "\(path) does not export its entry \(entry).")
        }
        // The entry's type: a C function without parameters that returns an int.
        typealias Entry = @convention(c) () -> Int32
        let call = unsafeBitCast(function, to: Entry.self)
        let (nodes, refusal) = Plugin.admit { call() }
        if let refusal { throw fault(incompatible, "\(path) is refused: \(refusal).") }
        guard !nodes.isEmpty else {
            throw fault(notAPlugin, "\(path) provides no node. Pass one to Plugin.provides.")
        }
        return nodes
    }

    /// The error for a message of the system's loader.
    private static func refused(_ path: String, _ reason: String) -> MediaError {
        if let range = reason.firstRange(of: "undefined symbol: ") {
            let symbol = reason[range.upperBound...].prefix { $0 != " " && $0 != "," }
            return fault(
                incompatible,
                "\(path) was built against another MediaAuthoring, which had \(symbol). Build it again with the plugin "
                    + "kit of this program.", cause: reason)
        }
        return fault(incompatible, "\(path) cannot be loaded: \(reason).", cause: reason)
    }

    // MARK: Errors

    private static let notFound = "plugin.not-found"
    private static let unreadable = "plugin.unreadable"
    private static let notAPlugin = "plugin.not-a-plugin"
    private static let incompatible = "plugin.incompatible"
    private static let alreadyLoaded = "plugin.loaded"

    private static func fault(_ code: String, _ message: String, cause: String? = nil) -> MediaError {
        MediaError(code: code, message: message, cause: cause)
    }
}
