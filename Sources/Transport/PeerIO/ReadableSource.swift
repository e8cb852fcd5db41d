internal import CGLib

/// Calls a function on a loop's thread whenever a descriptor is readable, and on request when it is writable.
final class ReadableSource {
    private let source: UnsafeMutablePointer<GSource>
    private let tag: gpointer?
    /// Whether the function is called when the descriptor is writable, too.
    var awaitsWriting = false {
        didSet {
            guard awaitsWriting != oldValue, let tag else { return }
            let both = GIOCondition(G_IO_IN.rawValue | G_IO_OUT.rawValue)
            g_source_modify_unix_fd(source, tag, awaitsWriting ? both : G_IO_IN)
        }
    }
    /// GLib reads the table until the last reference to a source is gone, so it lives as long as the process.
    // nonisolated(unsafe): written once, here.
    private nonisolated(unsafe) static let functions: UnsafeMutablePointer<GSourceFuncs> = {
        let functions = UnsafeMutablePointer<GSourceFuncs>.allocate(capacity: 1)
        functions.initialize(to: GSourceFuncs())
        functions.pointee.dispatch = { _, _, data in
            if let data { Unmanaged<Action>.fromOpaque(data).takeUnretainedValue().run() }
            return 1
        }
        return functions
    }()

    init(descriptor: Int32, context: OpaquePointer, _ action: @escaping () -> Void) {
        // GLib ends the process itself when it has no memory.
        guard let source = g_source_new(Self.functions, guint(MemoryLayout<GSource>.size)) else {
            fatalError("GLib made no source")
        }
        self.source = source
        tag = g_source_add_unix_fd(source, descriptor, G_IO_IN)
        // GLib takes a source that may not recurse out of the poll set while it runs. That wakes the loop for nothing,
        // with two writes, a read and an empty turn for each dispatch.
        g_source_set_can_recurse(source, 1)
        // The source owns the reference until it is destroyed.
        g_source_set_callback(source, nil, Unmanaged.passRetained(Action(action)).toOpaque()) { data in
            if let data { Unmanaged<Action>.fromOpaque(data).release() }
        }
        g_source_attach(source, context)
    }

    func remove() {
        g_source_destroy(source)
        g_source_unref(source)
    }

    private final class Action {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }
}
