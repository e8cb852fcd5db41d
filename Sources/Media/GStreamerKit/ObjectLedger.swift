internal import CGLib
internal import CGStreamer
import Glibc

/// Counts GStreamer's objects that were made and have not been freed: elements, pads, buffers, caps and others.
///
/// Tests find leaks with it. It uses GStreamer's tracer "leaks", which costs time with every object. Not thread-safe.
package final class ObjectLedger {
    private let tracer: UnsafeMutablePointer<GstTracer>
    private var counts: [String: Int] = [:]

    /// Traces this process. Call it before anything else loads GStreamer.
    package static func trace() {
        setenv("GST_TRACERS", "leaks", 1)
        GStreamer.load()
    }

    /// Starts to count. Nil where the process is not traced.
    package init?() {
        GStreamer.load()
        guard let tracers = gst_tracing_get_active_tracers() else { return nil }
        // The tracer lives as long as the process.
        defer { g_list_free(tracers) }
        guard let first = tracers.pointee.data else { return nil }
        tracer = first.assumingMemoryBound(to: GstTracer.self)
        emit("activity-start-tracking") { _ in }
    }

    /// How many objects of each type were made since the start and still live; negative where older ones were freed.
    package var living: [String: Int] {
        emit("activity-get-checkpoint") { answer in
            guard let structure = gst_value_get_structure(answer) else { return }
            add("objects-created-list", of: structure, 1)
            add("objects-removed-list", of: structure, -1)
        }
        return counts
    }

    private func add(_ field: String, of structure: UnsafePointer<GstStructure>, _ sign: Int) {
        guard let list = gst_structure_get_value(structure, field) else { return }
        for index in 0..<gst_value_list_get_size(list) {
            guard let entry = gst_value_get_structure(gst_value_list_get_value(list, index)),
                let name = gst_structure_get_string(entry, "type-name")
            else { continue }
            counts[String(cString: name), default: 0] += sign
        }
    }

    /// Emits one of the tracer's action signals, which have no arguments.
    private func emit(_ signal: String, _ read: (UnsafePointer<GValue>) -> Void) {
        let object = UnsafeMutableRawPointer(tracer).assumingMemoryBound(to: GTypeInstance.self)
        let type = object.pointee.g_class.pointee.g_type
        var instance = GValue()
        g_value_init(&instance, type)
        g_value_set_object(&instance, tracer)
        defer { g_value_unset(&instance) }
        var answer = GValue()
        g_value_init(&answer, gst_structure_get_type())
        defer { g_value_unset(&answer) }
        g_signal_emitv(&instance, g_signal_lookup(signal, type), 0, &answer)
        read(&answer)
    }
}
