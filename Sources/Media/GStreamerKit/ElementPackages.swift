/// The Debian packages of elements, including elements that are not installed.
enum ElementPackages {
    static func package(of factory: String) -> String? {
        byFactory[factory] ?? family(of: factory)?.package
    }

    /// The family of an element that is known only by its prefix.
    static func family(of factory: String) -> (prefix: String, package: String)? {
        byFactory[factory] == nil ? families.first { factory.hasPrefix($0.prefix) } : nil
    }

    /// Every element with a known package, except those of families.
    static var factories: some Sequence<String> { byFactory.keys.lazy.filter { !$0.hasSuffix("*") } }

    /// From `element-packages.txt`, in which the name of a package has a colon, and its elements follow. `vaapi*` are
    /// all elements with that prefix: a plugin registers them only if it finds their hardware, filters or codecs.
    private static let byFactory: [String: String] = {
        var packages: [String: String] = [:]
        var package = ""
        let table = String(decoding: PackageResources.element_packages_txt, as: UTF8.self)
        for word in table.split(whereSeparator: \.isWhitespace) {
            if word.hasSuffix(":") { package = String(word.dropLast()) } else { packages[String(word)] = package }
        }
        return packages
    }()

    /// The longest prefixes first.
    private static let families = byFactory.filter { $0.key.hasSuffix("*") }
        .map { (prefix: String($0.key.dropLast()), package: $0.value) }
        .sorted { $0.prefix.count > $1.prefix.count }
}
