internal import CGLib
internal import CGStreamer

/// What an element is told about delays by those around it.
extension Pad {
    /// Answers whoever asks through this input how late media comes, instead of what stands before it.
    package func answerLatencyQueries(seconds: Double) {
        gst_pad_add_probe(
            pointer, GST_PAD_PROBE_TYPE_QUERY_UPSTREAM,
            { _, info, data in
                guard let info, let seconds = Box<Double>.value(at: data) else { return GST_PAD_PROBE_OK }
                let query = info.pointee.data.assumingMemoryBound(to: GstQuery.self)
                guard query.pointee.type == GST_QUERY_LATENCY else { return GST_PAD_PROBE_OK }
                gst_query_set_latency(query, 0, UInt(seconds * 1e9), UInt.max)
                return GST_PAD_PROBE_HANDLED
            }, Box(seconds).retained, releaseBox)
    }

    /// Tells the element behind this output how long after its timestamp media is rendered, as sinks do.
    package func sendLatency(seconds: Double) {
        gst_pad_send_event(pointer, gst_event_new_latency(UInt(seconds * 1e9)))
    }
}
