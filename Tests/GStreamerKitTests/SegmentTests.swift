import CGLib
import CGStreamer
import MediaGraph
import Testing

@testable import GStreamerKit

@Suite struct SegmentTests {
    @Test func `a segment that is pushed before the link is replaced once, and before the first buffer`() throws {
        let pipeline = Pipeline { _ in }
        defer { pipeline.stop() }
        let sink = try Element("fakesink", ["sync": false, "async": false])
        pipeline.add(sink)
        let output = Pad(takingOwnership: try #require(gst_pad_new("src", GST_PAD_SRC)))
        gst_object_ref_sink(output.pointer)
        output.replaceSegments()
        gst_pad_set_active(output.pointer, 1)
        // A decoder exposes its pad before the program links it; its thread goes on meanwhile.
        gst_pad_push_event(output.pointer, gst_event_new_stream_start("stream"))
        Self.pushSegment(from: 5_000_000_000, on: output)
        #expect(pipeline.play())
        let arrived = Record<String>()
        sink.sink.watchEvents { event in
            if case .segment = event { arrived.add("segment") }
        }
        sink.sink.watchBuffers { buffer in arrived.add("buffer at \(buffer.runningTime ?? .max)") }
        #expect(output.link(sink.sink))
        Self.pushBuffer(at: 3, on: output)
        Self.pushSegment(from: 7_000_000_000, on: output)
        Self.pushBuffer(at: 4, on: output)
        #expect(arrived.entries == ["segment", "buffer at 3", "buffer at 4"])
        output.unlink(sink.sink)
    }

    private static func pushSegment(from start: UInt, on output: Pad) {
        var segment = GstSegment()
        gst_segment_init(&segment, GST_FORMAT_TIME)
        segment.start = start
        gst_pad_push_event(output.pointer, gst_event_new_segment(&segment))
    }

    private static func pushBuffer(at time: UInt, on output: Pad) {
        let buffer = gst_buffer_new()
        buffer?.pointee.pts = time
        #expect(gst_pad_push(output.pointer, buffer) == GST_FLOW_OK)
    }
}
