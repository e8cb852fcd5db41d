internal import CGLib
internal import CGStreamer
package import MediaGraph

/// Information of GStreamer's registry. The corresponding C type is `GstElementFactory`.
package enum ElementFactory {
    /// An installed element.
    package struct Entry: Sendable, Hashable {
        /// Such as `vp8enc`.
        package let name: String
        /// Such as `Codec/Encoder/Video`.
        package let classification: String
    }

    /// All installed elements, by name.
    package static func all() -> [Entry] {
        GStreamer.load()
        let list = gst_registry_get_feature_list(gst_registry_get(), gst_element_factory_get_type())
        defer { gst_plugin_feature_list_free(list) }
        return items(of: list).compactMap { Entry(OpaquePointer($0)) }.sorted { $0.name < $1.name }
    }

    /// Whether media of this format is raw, or an installed decoder that GStreamer would choose decodes it.
    static func canDecode(_ format: FormatStructure) -> Bool {
        if format.name.hasSuffix("/x-raw") { return true }
        let decoders = gst_element_factory_list_get_elements(decoding, GST_RANK_MARGINAL)
        defer { gst_plugin_feature_list_free(decoders) }
        let able = gst_element_factory_list_filter(decoders, format.owner.pointer, GST_PAD_SINK, 0)
        defer { gst_plugin_feature_list_free(able) }
        return able != nil
    }

    /// GST_ELEMENT_FACTORY_TYPE_DECODER, which is a macro.
    private static let decoding = GstElementFactoryListType(1)

    /// The most similar name of an installed element.
    package static func nearest(to name: String) -> String? {
        name.nearest(among: all().map(\.name))
    }

    /// Whether an element of this name exists but is not installed.
    package static func isLacking(_ name: String) -> Bool {
        guard ElementPackages.package(of: name) != nil, !GStreamer.has(name) else { return false }
        guard let family = ElementPackages.family(of: name) else { return true }
        // A misspelt name of a family that is known by its prefix, such as v4l2, would pass too.
        return name.nearest(among: all().map(\.name).filter { $0.hasPrefix(family.prefix) }) == nil
    }

    /// Whether another element of a Debian package is installed. A plugin without its driver registers none.
    private static func isInstalled(_ package: String) -> Bool {
        ElementPackages.factories.contains { ElementPackages.package(of: $0) == package && GStreamer.has($0) }
    }

    /// One message for an element that cannot be created, with its Debian package or a suggestion.
    package static func reasonForLack(of name: String) -> String {
        if isLacking(name), let package = ElementPackages.package(of: name), isInstalled(package) {
            return "The GStreamer element \(name) is unavailable on this machine, although its package \(package) is "
                + "installed: its driver or device is missing."
        }
        if isLacking(name) {
            return "The GStreamer element \(name) is not installed. On Debian, install "
                + "\(GStreamer.debianPackage(of: name))."
        }
        if let meant = nearest(to: name) ?? name.nearest(among: ElementPackages.factories) {
            return "The GStreamer element \(name) is not installed; did you mean \(meant)?"
        }
        return "The GStreamer element \(name) is not installed, and no known Debian package has it, including "
            + "gstreamer1.0-plugins-good, -bad and -ugly. Check its name."
    }

    /// The description of an element. Nil if it is not installed. Loads its plugin and creates one to read its default
    /// values.
    package static func describe(_ name: String) -> ElementDescription? {
        GStreamer.load()
        guard let found = gst_element_factory_find(name) else { return nil }
        defer { gst_object_unref(UnsafeMutableRawPointer(found)) }
        guard let factory = gst_plugin_feature_load(found) else { return nil }
        defer { gst_object_unref(UnsafeMutableRawPointer(factory)) }
        guard let entry = Entry(factory), let element = try? Element(name) else { return nil }
        return ElementDescription(
            entry: entry, longName: metadata(factory, "long-name"), summary: metadata(factory, "description"),
            plugin: gst_plugin_feature_get_plugin_name(factory).map { String(cString: $0) } ?? "",
            pads: element.padTemplates, properties: element.writableProperties)
    }

    fileprivate static func metadata(_ factory: OpaquePointer, _ key: String) -> String {
        gst_element_factory_get_metadata(factory, key).map { String(cString: $0) } ?? ""
    }
}

extension ElementFactory.Entry {
    fileprivate init?(_ factory: OpaquePointer) {
        let object = UnsafeMutableRawPointer(factory).assumingMemoryBound(to: GstObject.self)
        guard let name = takeString(gst_object_get_name(object)) else { return nil }
        self.name = name
        classification = ElementFactory.metadata(factory, "klass")
    }
}

/// GStreamer's description of an element.
package struct ElementDescription: Sendable {
    package let entry: ElementFactory.Entry
    /// Such as `On2 VP8 Encoder`.
    package let longName: String
    /// One sentence.
    package let summary: String
    package let plugin: String
    package let pads: [PadTemplate]
    /// Writable properties, in alphabetical order, with their values as settings of a node.
    package let properties: [SettingContract]

    package var name: String { entry.name }

    package func property(_ name: String) -> SettingContract? {
        properties.first { $0.name == name }
    }
}

extension Element {
    fileprivate var writableProperties: [SettingContract] {
        // The name and the parent belong to the node and the pipeline.
        propertyNames.filter { $0 != "name" && $0 != "parent" }.compactMap { property in
            specification(of: property).flatMap { SettingContract($0, defaultValue: value(property)) }
        }
    }
}
