internal import CGLib
internal import CGStreamer
internal import Glibc
import Synchronization

/// A line of GStreamer's own log.
package struct DebugLine: Sendable {
    /// The part of GStreamer that logged it, such as `v4l2src` or `GST_PADS`.
    package let category: String
    /// Whether it is an error, or else a warning.
    package let isError: Bool
    /// Names of the element or pad and its parents, innermost first. Empty if it concerns none.
    package let path: [String]
    package let message: String
}

/// GStreamer's log: messages for developers of elements, some of which matter to users.
package enum DebugLog {
    private static let listener = Mutex<(@Sendable (DebugLine) -> Void)?>(nil)

    /// Passes every error and warning to `body`, which replaces an earlier one. Nil ends that.
    ///
    /// `body` is called on the logging thread, which may hold locks of GStreamer, so it must not call anything of this
    /// target. GStreamer prints only if the environment has `GST_DEBUG`, which then decides what is printed and which
    /// lines exist.
    package static func listen(_ body: (@Sendable (DebugLine) -> Void)?) {
        GStreamer.load()
        _ = isInstalled
        listener.withLock { $0 = body }
        if getenv("GST_DEBUG") == nil {
            gst_debug_set_default_threshold(body == nil ? GST_LEVEL_NONE : GST_LEVEL_WARNING)
        }
    }

    private static let isInstalled: Bool = {
        // Nil means GStreamer's own function.
        if getenv("GST_DEBUG") == nil { gst_debug_remove_log_function(nil) }
        gst_debug_add_log_function(
            { category, level, _, _, _, object, message, _ in
                DebugLog.heard(category, level, object, message)
            }, nil, nil)
        return true
    }()

    private static func heard(
        _ category: UnsafeMutablePointer<GstDebugCategory>?, _ level: GstDebugLevel,
        _ object: UnsafeMutablePointer<GObject>?, _ message: OpaquePointer?
    ) {
        guard level == GST_LEVEL_ERROR || level == GST_LEVEL_WARNING, let body = listener.withLock({ $0 }) else {
            return
        }
        body(
            DebugLine(
                category: gst_debug_category_get_name(category).map { String(cString: $0) } ?? "",
                isError: level == GST_LEVEL_ERROR, path: object.map(path) ?? [],
                message: gst_debug_message_get(message).map { String(cString: $0) } ?? ""))
    }

    /// Like `objectPath`, for a thread that may hold the object's lock: never waits for it.
    private static func path(_ object: UnsafeMutablePointer<GObject>) -> [String] {
        let instance = UnsafeMutableRawPointer(object).assumingMemoryBound(to: GTypeInstance.self)
        guard g_type_check_instance_is_a(instance, gst_object_get_type()) != 0 else { return [] }
        var path: [String] = []
        var next: UnsafeMutablePointer<GstObject>? = UnsafeMutableRawPointer(object)
            .assumingMemoryBound(to: GstObject.self)
        var isOurs = false
        while let current = next {
            let isLocked = g_mutex_trylock(&current.pointee.lock) != 0
            // The lock's holder is this thread or a reader: names and parents do not change here. GStreamer's own log
            // function reads them without the lock too.
            if let name = current.pointee.name { path.append(String(cString: name)) }
            next = current.pointee.parent
            if let next { gst_object_ref(next) }
            if isLocked { g_mutex_unlock(&current.pointee.lock) }
            if isOurs { gst_object_unref(current) }
            isOurs = true
        }
        return path
    }
}
