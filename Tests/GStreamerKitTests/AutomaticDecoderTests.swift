import CGLib
import CGStreamer
import MediaGraph
import Testing

@testable import GStreamerKit

@Suite struct AutomaticDecoderTests {
    @Test("A decodebin decodes VP8 with one thread")
    func threads() throws {
        let pipeline = Pipeline { _ in }
        defer { pipeline.stop() }
        let source = try Element("videotestsrc", ["num-buffers": 3])
        let encoder = try Element("vp8enc")
        let decoder = try Element("decodebin")
        for element in [source, encoder, decoder] { pipeline.add(element) }
        try source.link(encoder)
        try encoder.link(decoder)
        let threads = Record<Int>()
        decoder.onPadAdded { [weak decoder] _ in
            guard let bin = decoder.map({ UnsafeMutableRawPointer($0.pointer).assumingMemoryBound(to: GstBin.self) }),
                let found = gst_bin_iterate_all_by_element_factory_name(bin, "vp8dec")
            else { return }
            defer { gst_iterator_free(found) }
            var holder = GValue()
            defer { g_value_unset(&holder) }
            while gst_iterator_next(found, &holder) == GST_ITERATOR_OK {
                guard let object = g_value_dup_object(&holder) else { continue }
                defer { g_object_unref(object) }
                var count = GValue()
                g_object_get_property(object.assumingMemoryBound(to: GObject.self), "threads", &count)
                threads.add(Int(g_value_get_uint(&count)))
                g_value_reset(&holder)
            }
        }
        #expect(pipeline.play())
        #expect(threads.wait(count: 1))
        #expect(threads.entries == [1])
    }
}
