internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The GStreamer library as a whole.
package enum GStreamer {
    /// Loads GStreamer on first use, once, on any thread.
    private static let isLoaded: Bool = {
        register_socket_types()
        // An embedding process keeps its own locale and arguments.
        gst_init(nil, nil)
        return true
    }()

    /// Required before any other use. Every initialiser of this target calls it.
    package static func load() {
        precondition(isLoaded)
    }

    /// The current time on CLOCK_MONOTONIC, the clock of every pipeline.
    package static var now: MediaTime {
        MediaTime(nanoseconds: UInt64(gst_util_get_timestamp()))
    }

    /// The version of the linked library, which need not be loaded yet.
    package static var version: String {
        var (major, minor, micro, nano): (UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0)
        gst_version(&major, &minor, &micro, &nano)
        return "\(major).\(minor).\(micro)"
    }

    /// Whether the element is installed.
    package static func has(_ factory: String) -> Bool {
        load()
        guard let found = gst_element_factory_find(factory) else { return false }
        gst_object_unref(UnsafeMutableRawPointer(found))
        return true
    }

    /// The Debian package of an element. If it is unknown, the packages with most elements.
    package static func debianPackage(of factory: String) -> String {
        ElementPackages.package(of: factory)
            ?? "gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad or gstreamer1.0-plugins-ugly"
    }
}

/// Holds a value, such as a closure, that C passes around as a pointer.
final class Box<Value> {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// A pointer that retains the box until `releaseBox`.
    var retained: UnsafeMutableRawPointer {
        // C keeps the closure while the probe, signal or handler lives. Its destroy notification releases the
        // reference.
        Unmanaged.passRetained(self).toOpaque()
    }

    static func value(at pointer: UnsafeMutableRawPointer?) -> Value? {
        // The pointer came from `retained` of the same type, and C still retains it. A checked cast would cost more
        // than many a probe.
        guard let pointer else { return nil }
        return Unmanaged<Box<Value>>.fromOpaque(pointer).takeUnretainedValue().value
    }
}

/// Releases a pointer of `Box.retained`.
func releaseBox(_ pointer: UnsafeMutableRawPointer?) {
    guard let pointer else { return }
    Unmanaged<AnyObject>.fromOpaque(pointer).release()
}

/// The reaction to a signal: to its arguments, of which the first is the object. Sets the result of a signal that has one.
typealias SignalBody = @Sendable (_ arguments: UnsafePointer<GValue>, _ result: UnsafeMutablePointer<GValue>?) -> Void

/// Calls `body` for each signal of an object, on the thread that emits it.
func onSignal(_ signal: String, of object: UnsafeMutablePointer<GstElement>, _ body: @escaping SignalBody) {
    let closure = g_closure_new_simple(UInt32(MemoryLayout<GClosure>.size), Box(body).retained)
    g_closure_add_finalize_notifier(closure, closure?.pointee.data) { data, _ in releaseBox(data) }
    g_closure_set_marshal(closure) { closure, result, _, arguments, _, _ in
        if let arguments { Box<SignalBody>.value(at: closure?.pointee.data)?(arguments, result) }
    }
    g_signal_connect_closure(object, signal, closure, 0)
}

/// Copies and frees a string that GLib allocated.
func takeString(_ pointer: UnsafeMutablePointer<CChar>?) -> String? {
    guard let pointer else { return nil }
    defer { g_free(pointer) }
    return String(cString: pointer)
}

/// The items of a list of pointers.
func items(of list: UnsafeMutablePointer<GList>?) -> [UnsafeMutableRawPointer] {
    sequence(first: list) { $0?.pointee.next }.prefix { $0 != nil }.compactMap { $0?.pointee.data }
}
