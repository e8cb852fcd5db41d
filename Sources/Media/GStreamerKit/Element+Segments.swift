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
        onSignal("get-fragment-stream", of: pointer) { arguments, result in
            guard let location = g_value_get_string(arguments + 1) else { return }
            let path = path(String(cString: location))
            guard let file = g_file_new_for_path(path) else { return }
            defer { g_object_unref(UnsafeMutableRawPointer(file)) }
            g_file_delete(file, nil, nil)
            guard let stream = g_file_create(file, G_FILE_CREATE_NONE, nil, nil) else { return }
            opened(path)
            g_value_take_object(result, UnsafeMutableRawPointer(stream))
        }
    }
}
