internal import CGLib
internal import CGStreamer

/// The decoders that a decodebin chooses.
enum AutomaticDecoders {
    /// Call for every element that a bin creates inside itself, before it leaves the state NULL.
    ///
    /// By default, vp8dec takes a thread per core. Those wait for each other in busy loops, so that on a busy machine
    /// a frame takes 30 times as long.
    static func prepare(_ element: UnsafeMutablePointer<GstElement>, in bin: UnsafeMutablePointer<GstElement>) {
        guard factory(of: element) == "vp8dec", factory(of: bin)?.hasPrefix("decodebin") == true else { return }
        gst_util_set_object_arg(UnsafeMutableRawPointer(element).assumingMemoryBound(to: GObject.self), "threads", "1")
    }

    private static func factory(of element: UnsafeMutablePointer<GstElement>) -> String? {
        guard let factory = gst_element_get_factory(element) else { return nil }
        let feature = UnsafeMutableRawPointer(factory).assumingMemoryBound(to: GstObject.self)
        return takeString(gst_object_get_name(feature))
    }
}
