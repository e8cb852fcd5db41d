internal import CGLib
internal import CGStreamer

extension Element {
    /// Makes an hlssink2 write each segment to the path that `path` returns for its location. Called on a GStreamer
    /// thread. An existing file is removed first.
    ///
    /// The element itself would write a new file beside an existing one, and rename it when it is closed. GStreamer 1.22
    /// does not close the first segment.
    package func writeSegments(to path: @escaping @Sendable (_ location: String) -> String) {
        let thunk:
            @convention(c) (
                UnsafeMutablePointer<GstElement>?, UnsafePointer<CChar>?, UnsafeMutableRawPointer?
            ) -> UnsafeMutableRawPointer? = { _, location, data in
                guard let location, let path = Box<@Sendable (String) -> String>.value(at: data),
                    let file = g_file_new_for_path(path(String(cString: location)))
                else { return nil }
                defer { g_object_unref(UnsafeMutableRawPointer(file)) }
                g_file_delete(file, nil, nil)
                return g_file_create(file, G_FILE_CREATE_NONE, nil, nil).map { UnsafeMutableRawPointer($0) }
            }
        g_signal_connect_data(
            pointer, "get-fragment-stream", unsafeBitCast(thunk, to: GCallback.self), Box(path).retained,
            releaseBoxOfSignal, GConnectFlags(rawValue: 0))
    }
}
