internal import CGLib
internal import CGStreamer

extension Element {
    /// Makes an hlssink2 write each segment to the path that `path` returns for its location. An existing file is removed
    /// first. `opened` gets the path of the new one. Both are called on a GStreamer thread downstream of all queues.
    ///
    /// The element itself would write a new file beside an existing one, and rename it when it is closed. GStreamer 1.22
    /// does not close the first segment.
    package func writeSegments(
        to path: @escaping @Sendable (_ location: String) -> String,
        opened: @escaping @Sendable (_ path: String) -> Void
    ) {
        let thunk:
            @convention(c) (
                UnsafeMutablePointer<GstElement>?, UnsafePointer<CChar>?, UnsafeMutableRawPointer?
            ) -> UnsafeMutableRawPointer? = { _, location, data in
                guard let location, let files = Box<SegmentFiles>.value(at: data) else { return nil }
                let path = files.path(String(cString: location))
                guard let file = g_file_new_for_path(path) else { return nil }
                defer { g_object_unref(UnsafeMutableRawPointer(file)) }
                g_file_delete(file, nil, nil)
                guard let stream = g_file_create(file, G_FILE_CREATE_NONE, nil, nil) else { return nil }
                files.opened(path)
                return UnsafeMutableRawPointer(stream)
            }
        connect(
            "get-fragment-stream", unsafeBitCast(thunk, to: GCallback.self),
            Box((path, opened) as SegmentFiles).retained)
    }
}

private typealias SegmentFiles = (path: @Sendable (_ location: String) -> String, opened: @Sendable (String) -> Void)
