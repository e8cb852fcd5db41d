internal import CGLib
internal import CGStreamer

/// The elements that open a connection to an X server.
///
/// Xlib belongs to the whole process, which may have an X connection of its own or none. So it is changed when the
/// first of these elements is created, and never on a machine that uses none.
enum XElements {
    /// Names of their plugins. Elements of OpenGL and VA-API use an X display if there is one.
    private static let plugins: Set = [
        "aasink", "autodetect", "cacasink", "gtk", "gtk4", "opengl", "qml6", "qmlgl", "sdl", "vaapi", "ximagesink",
        "ximagesrc", "xvimagesink",
    ]

    /// Call for every element before it leaves the state NULL, in which no element opens a display.
    static func prepare(for element: UnsafeMutablePointer<GstElement>) {
        guard let factory = gst_element_get_factory(element),
            let plugin = gst_plugin_feature_get_plugin_name(factory),
            plugins.contains(String(cString: plugin))
        else { return }
        XConnections.survive()
        XErrors.survive()
    }
}
