internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The GStreamer library as a whole.
package enum GStreamer {
    /// Loads GStreamer on first use; `static let` makes it once, from whatever thread.
    private static let isLoaded: Bool = {
        LeftoverDescriptors.avoid()
        // A process that embeds us keeps its own locale and arguments: nothing is handed over.
        gst_init(nil, nil)
        return true
    }()

    /// Must come before any other use; every initialiser of this target calls it.
    package static func load() {
        precondition(isLoaded)
    }

    /// Now, on CLOCK_MONOTONIC: the clock that every pipeline of ours runs on.
    package static var now: MediaTime {
        MediaTime(nanoseconds: UInt64(gst_util_get_timestamp()))
    }

    package static var version: String {
        load()
        return linkedVersion
    }

    /// The same, of a library that need not be loaded yet.
    static var linkedVersion: String {
        var major: UInt32 = 0
        var minor: UInt32 = 0
        var micro: UInt32 = 0
        var nano: UInt32 = 0
        gst_version(&major, &minor, &micro, &nano)
        return "\(major).\(minor).\(micro)"
    }

    /// Whether an element of this factory name can be made here.
    package static func has(_ factory: String) -> Bool {
        load()
        guard let found = gst_element_factory_find(factory) else { return false }
        gst_object_unref(UnsafeMutableRawPointer(found))
        return true
    }

    /// The Debian package that brings an element; where none is known, those that bring most.
    package static func debianPackage(of factory: String) -> String {
        ElementPackages.package(of: factory)
            ?? "gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad or gstreamer1.0-plugins-ugly"
    }
}

/// Holds a closure (or anything else) for C to carry around as a pointer.
final class Box<Value> {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// A pointer that keeps the box alive until `releaseBox` is called with it.
    var retained: UnsafeMutableRawPointer {
        // C holds the closure for as long as the probe, signal or handler lives; its destroy notification gives the
        // reference back.
        Unmanaged.passRetained(self).toOpaque()
    }

    static func value(at pointer: UnsafeMutableRawPointer?) -> Value? {
        // The pointer came from `retained` of the same type and is still retained by C. A cast at run time would cost more
        // than many a probe does.
        guard let pointer else { return nil }
        return Unmanaged<Box<Value>>.fromOpaque(pointer).takeUnretainedValue().value
    }
}

/// Gives back what `Box.retained` took.
func releaseBox(_ pointer: UnsafeMutableRawPointer?) {
    guard let pointer else { return }
    Unmanaged<AnyObject>.fromOpaque(pointer).release()
}

/// The same in the shape that signal connections want.
func releaseBoxOfSignal(_ pointer: UnsafeMutableRawPointer?, _ closure: UnsafeMutablePointer<GClosure>?) {
    releaseBox(pointer)
}

/// Takes over a string that GLib allocated.
func takeString(_ pointer: UnsafeMutablePointer<CChar>?) -> String? {
    guard let pointer else { return nil }
    defer { g_free(pointer) }
    return String(cString: pointer)
}
