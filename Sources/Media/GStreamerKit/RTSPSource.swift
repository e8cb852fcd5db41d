internal import CGLib
internal import CGStreamer

extension Element {
    /// Asks `body` for each stream that an rtspsrc is offered whether it is to be sent; the argument is `video`, `audio`
    /// or another media type. Called on a GStreamer thread.
    package func onStreamOffered(_ body: @escaping @Sendable (_ media: String) -> Bool) {
        let thunk:
            @convention(c) (
                UnsafeMutablePointer<GstElement>?, UInt32, UnsafeMutablePointer<GstCaps>?, UnsafeMutableRawPointer?
            ) -> gboolean = { _, _, caps, data in
                guard let caps, let structure = gst_caps_get_structure(caps, 0),
                    let media = gst_structure_get_string(structure, "media"),
                    let body = Box<@Sendable (String) -> Bool>.value(at: data)
                else { return 1 }
                return body(String(cString: media)) ? 1 : 0
            }
        g_signal_connect_data(
            pointer, "select-stream", unsafeBitCast(thunk, to: GCallback.self), Box(body).retained,
            releaseBoxOfSignal, GConnectFlags(rawValue: 0))
    }
}
