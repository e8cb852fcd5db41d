internal import CGLib
internal import CGStreamer
package import MediaGraph

/// A GStreamer element. The corresponding C type is `GstElement`.
// @unchecked: the pointer never changes, and GStreamer's locks guard reference counts, properties, pads and events of a
// GstElement.
package final class Element: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<GstElement>
    /// The element's factory, such as `vp8enc`.
    package let factory: String

    /// Creates an element. Throws `element.missing` with the Debian package if the factory is not installed, and
    /// `element.property` if the installed element lacks one of the properties or values.
    package init(_ factory: String, name: String? = nil, _ properties: [String: SettingValue] = [:]) throws(MediaError)
    {
        GStreamer.load()
        guard let made = gst_element_factory_make(factory, name) else {
            throw MediaError(code: MediaError.Code.elementMissing, message: ElementFactory.reasonForLack(of: factory))
        }
        gst_object_ref_sink(made)
        XElements.prepare(for: made)
        pointer = made
        self.factory = factory
        for (name, value) in properties { try set(name, value) }
    }

    /// A capsfilter that passes only `caps`.
    package static func filter(_ caps: String) throws(MediaError) -> Element {
        try Element("capsfilter", ["caps": .text(caps)])
    }

    deinit {
        gst_object_unref(pointer)
    }

    package var name: String {
        takeString(gst_object_get_name(asObject)) ?? factory
    }

    var asObject: UnsafeMutablePointer<GstObject> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstObject.self)
    }

    var asGObject: UnsafeMutablePointer<GObject> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GObject.self)
    }

    // MARK: Pads

    /// The existing pad of this name.
    package func pad(_ name: String) -> Pad? {
        gst_element_get_static_pad(pointer, name).map(Pad.init(takingOwnership:))
    }

    /// The pad of this name, existing or requested. Nil if the element has none.
    package func padByName(_ name: String) -> Pad? {
        (name.contains("%") ? nil : pad(name)) ?? requestPad(name)
    }

    /// The output of an element with one output. Traps without one.
    package var source: Pad {
        guard let pad = pad("src") else { preconditionFailure("\(factory) has no pad src") }
        return pad
    }

    /// The input of an element with one input. Traps without one.
    package var sink: Pad {
        guard let pad = pad("sink") else { preconditionFailure("\(factory) has no pad sink") }
        return pad
    }

    /// Requests a new pad, as of a tee or a compositor, by the name of a template (`sink_%u`) or of a pad (`sink_3`).
    /// Nil if there is no such template, or no more pads.
    package func requestPad(_ template: String) -> Pad? {
        gst_element_request_pad_simple(pointer, template).map(Pad.init(takingOwnership:))
    }

    /// Requests a new pad of a template by its name, for a known format.
    package func requestPad(_ template: String, name: String?, caps: Caps? = nil) -> Pad? {
        guard let found = gst_element_get_pad_template(pointer, template) else { return nil }
        return gst_element_request_pad(pointer, found, name, caps?.pointer).map(Pad.init(takingOwnership:))
    }

    /// Releases a requested pad. Unlink it first.
    package func release(_ pad: Pad) {
        gst_element_release_request_pad(pointer, pad.pointer)
    }

    /// Templates of the element's pads.
    package var padTemplates: [PadTemplate] {
        let opaque = UnsafeMutableRawPointer(classPointer).assumingMemoryBound(to: GstElementClass.self)
        // The list belongs to the class.
        return items(of: gst_element_class_get_pad_template_list(opaque)).compactMap { item in
            let template = item.assumingMemoryBound(to: GstPadTemplate.self)
            return gst_pad_template_get_caps(template).map { PadTemplate(template, Caps(takingOwnership: $0)) }
        }
    }

    /// The existing pads.
    package var pads: [Pad] {
        guard let iterator = gst_element_iterate_pads(pointer) else { return [] }
        defer { gst_iterator_free(iterator) }
        var pads: [Pad] = []
        var holder = GValue()
        defer { g_value_unset(&holder) }
        while true {
            switch gst_iterator_next(iterator, &holder) {
            case GST_ITERATOR_OK:
                guard let object = g_value_dup_object(&holder) else { continue }
                pads.append(Pad(takingOwnership: object.assumingMemoryBound(to: GstPad.self)))
                g_value_reset(&holder)
            case GST_ITERATOR_RESYNC:
                pads = []
                gst_iterator_resync(iterator)
            default:
                return pads
            }
        }
    }

    /// Calls `body` on a GStreamer thread for each pad that appears later, such as those of a decodebin.
    package func onPadAdded(_ body: @escaping @Sendable (Pad) -> Void) {
        let thunk:
            @convention(c) (
                UnsafeMutablePointer<GstElement>?, UnsafeMutablePointer<GstPad>?, UnsafeMutableRawPointer?
            ) -> Void = { _, pad, data in
                guard let pad, let body = Box<@Sendable (Pad) -> Void>.value(at: data) else { return }
                gst_object_ref(pad)
                body(Pad(takingOwnership: pad))
            }
        connect("pad-added", unsafeBitCast(thunk, to: GCallback.self), Box(body).retained)
    }

    /// Calls `body` on a GStreamer thread when all pads have appeared.
    package func onNoMorePads(_ body: @escaping @Sendable () -> Void) {
        let thunk: @convention(c) (UnsafeMutablePointer<GstElement>?, UnsafeMutableRawPointer?) -> Void = { _, data in
            Box<@Sendable () -> Void>.value(at: data)?()
        }
        connect("no-more-pads", unsafeBitCast(thunk, to: GCallback.self), Box(body).retained)
    }

    private func connect(_ signal: String, _ callback: GCallback, _ data: UnsafeMutableRawPointer) {
        g_signal_connect_data(pointer, signal, callback, data, releaseBoxOfSignal, GConnectFlags(rawValue: 0))
    }

    // MARK: Links

    /// Links this element's output to the input of `next`.
    package func link(_ next: Element) throws(MediaError) {
        guard gst_element_link(pointer, next.pointer) != 0 else {
            throw MediaError(
                code: MediaError.Code.elementFailed,
                message: "The GStreamer elements \(factory) and \(next.factory) have no common format.")
        }
    }

    /// Links this element's output to the input of `next`. Returns nil on success, else the reason.
    package func tryLink(_ next: Element) -> String? {
        do throws(MediaError) {
            try link(next)
            return nil
        } catch {
            guard let output = pad("src"), let input = next.pad("sink") else { return error.message }
            return output.tryLink(input) ?? error.message
        }
    }

    /// Nanoseconds on the monotonic clock at which the element's running time was 0.
    package var baseTime: UInt64 {
        UInt64(gst_element_get_base_time(pointer))
    }

    /// GStreamer's classification, such as `Codec/Encoder/Video`.
    package var classification: String {
        gst_element_get_metadata(pointer, "klass").map { String(cString: $0) } ?? ""
    }

    /// Names of the element and its parent bins, innermost first.
    package var path: [String] { objectPath(asObject) }

    /// Ends a source like at the end of its stream.
    package func sendEndOfStream() {
        gst_element_send_event(pointer, gst_event_new_eos())
    }
}

/// Names of an object and its parents, innermost first.
func objectPath(_ object: UnsafeMutablePointer<GstObject>) -> [String] {
    var path: [String] = []
    var next = gst_object_ref(object)?.assumingMemoryBound(to: GstObject.self)
    while let current = next {
        path.append(takeString(gst_object_get_name(current)) ?? "")
        next = gst_object_get_parent(current)
        gst_object_unref(current)
    }
    return path
}
