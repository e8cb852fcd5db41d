internal import CGLib
internal import CGStreamer

/// Latency queries and events.
extension Pad {
    /// Answers latency queries that arrive at this input, instead of the upstream elements.
    package func answerLatencyQueries(seconds: Double, isLive: Bool = false) {
        onLatencyQuery { (isLive, UInt(seconds * 1e9), UInt.max) }
    }

    /// Answers latency queries that arrive at this output: with the latency upstream of `input`, plus `seconds`.
    package func answerLatencyQueries(asking input: Pad, adding seconds: Double) {
        let added = UInt(seconds * 1e9)
        onLatencyQuery {
            input.latency.map { before in
                (before.isLive, UInt(before.minimum) + added, before.maximum.map { UInt($0) + added } ?? UInt.max)
            }
        }
    }

    /// Tells the element of this output how long after its timestamp media is rendered, as sinks do.
    package func sendLatency(seconds: Double) {
        gst_pad_send_event(pointer, gst_event_new_latency(UInt(seconds * 1e9)))
    }
}

extension Element {
    /// How long after its timestamp a sink renders media, in seconds, as its pipeline has told it. Nil for another element.
    package var renderingDelay: Double? {
        let instance = UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GTypeInstance.self)
        guard g_type_check_instance_is_a(instance, gst_base_sink_get_type()) != 0 else { return nil }
        let sink = UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstBaseSink.self)
        return Double(gst_base_sink_get_latency(sink)) / 1e9
    }

    /// For a renderer that plays by the clock: seconds from an audio timestamp until it is heard, as far as the sound
    /// system reports its buffers. Nil before it plays.
    package var secondsUntilHeard: Double? {
        guard let planned = renderingDelay else { return nil }
        let instance = UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GTypeInstance.self)
        guard g_type_check_instance_is_a(instance, gst_audio_base_sink_get_type()) != 0 else { return planned }
        // The device counts played audio by its own clock. The sink places audio by that clock's offset when it was
        // last compared with the pipeline's clock. If it has fallen behind since, audio is heard later.
        guard let clock = gst_element_provide_clock(pointer) else { return nil }
        defer { gst_object_unref(clock) }
        let heard = gst_clock_get_internal_time(clock)
        let now = gst_util_get_timestamp()
        guard heard != UInt.max else { return nil }
        var (comparedHere, comparedThere): (UInt, UInt) = (0, 0)
        gst_clock_get_calibration(clock, &comparedHere, &comparedThere, nil, nil)
        let elapsed = Double(Int(now) - Int(comparedThere)) - Double(Int(heard) - Int(comparedHere))
        return planned + elapsed / 1e9
    }
}
