/// The Debian packages of elements, including elements that are not installed.
enum ElementPackages {
    static func package(of factory: String) -> String? {
        byFactory[factory] ?? family(of: factory)?.package
    }

    /// The family of an element that is known only by its prefix.
    static func family(of factory: String) -> (prefix: String, package: String)? {
        byFactory[factory] == nil ? families.first { factory.hasPrefix($0.prefix) } : nil
    }

    /// Every element with a known package.
    static var factories: some Sequence<String> { byFactory.keys }

    /// From `element-packages.txt`, in which the name of a package has a colon, and its elements follow.
    private static let byFactory: [String: String] = {
        var packages: [String: String] = [:]
        var package = ""
        let table = String(decoding: PackageResources.element_packages_txt, as: UTF8.self)
        for word in table.split(whereSeparator: \.isWhitespace) {
            if word.hasSuffix(":") { package = String(word.dropLast()) } else { packages[String(word)] = package }
        }
        return packages
    }()

    /// Elements that a plugin registers only if it finds their hardware, filters or codecs.
    private static let families: [(prefix: String, package: String)] = [
        ("vaapi", "gstreamer1.0-vaapi"),
        ("avdec_", "gstreamer1.0-libav"), ("avenc_", "gstreamer1.0-libav"), ("avdemux_", "gstreamer1.0-libav"),
        ("avmux_", "gstreamer1.0-libav"), ("avdeinterlace", "gstreamer1.0-libav"), ("gl", "gstreamer1.0-gl"),
        ("rtp", "gstreamer1.0-plugins-good"),
        ("omx", "gstreamer1.0-omx-generic"),
        ("v4l2sl", "gstreamer1.0-plugins-bad"), ("v4l2", "gstreamer1.0-plugins-good"),
        ("vah26", "gstreamer1.0-plugins-bad"), ("vavp", "gstreamer1.0-plugins-bad"),
        ("vaav1", "gstreamer1.0-plugins-bad"), ("vampeg2", "gstreamer1.0-plugins-bad"),
        ("vajpeg", "gstreamer1.0-plugins-bad"), ("vapostproc", "gstreamer1.0-plugins-bad"),
        ("vadeinterlace", "gstreamer1.0-plugins-bad"), ("vacompositor", "gstreamer1.0-plugins-bad"),
        ("varenderD", "gstreamer1.0-plugins-bad"),
        ("nvh26", "gstreamer1.0-plugins-bad"), ("nvvp", "gstreamer1.0-plugins-bad"),
        ("nvav1", "gstreamer1.0-plugins-bad"), ("nvjpeg", "gstreamer1.0-plugins-bad"),
        ("nvmpeg", "gstreamer1.0-plugins-bad"), ("cuda", "gstreamer1.0-plugins-bad"),
        ("qsv", "gstreamer1.0-plugins-bad"), ("msdk", "gstreamer1.0-plugins-bad"),
        ("frei0r-", "gstreamer1.0-plugins-bad"), ("ladspa", "gstreamer1.0-plugins-bad"),
        ("lv2-", "gstreamer1.0-plugins-bad"),
    ]
}
