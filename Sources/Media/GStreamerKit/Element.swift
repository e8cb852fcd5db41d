internal import CGLib
internal import CGStreamer
package import MediaGraph

/// A GStreamer element. The corresponding C type is `GstElement`.
// @unchecked: the pointer never changes, and GStreamer's locks guard the pads and events of a GstElement.
package final class Element: GStreamerObject, @unchecked Sendable {
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
        super.init(takingOwnership: made)
        for (name, value) in properties { try set(name, value) }
    }

    /// A capsfilter that passes only `caps`.
    package static func filter(_ caps: String) throws(MediaError) -> Element {
        try Element("capsfilter", ["caps": .text(caps)])
    }

    override var title: String { factory }

    override var propertyState: ElementState? { state }

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
        var pads: [Pad] = []
        let append: GstElementForeachPadFunc = { _, pad, list in
            guard let pad else { return 1 }
            gst_object_ref(pad)
            list?.assumingMemoryBound(to: [Pad].self).pointee.append(Pad(takingOwnership: pad))
            return 1
        }
        _ = withUnsafeMutablePointer(to: &pads) { gst_element_foreach_pad(pointer, append, $0) }
        return pads
    }

    /// Calls `body` on a GStreamer thread for each pad that appears later, such as those of a decodebin.
    package func onPadAdded(_ body: @escaping @Sendable (Pad) -> Void) {
        onSignal("pad-added", of: pointer) { arguments, _ in
            guard let pad = g_value_dup_object(arguments + 1)?.assumingMemoryBound(to: GstPad.self) else { return }
            body(Pad(takingOwnership: pad))
        }
    }

    /// Calls `body` on a GStreamer thread when all pads have appeared.
    package func onNoMorePads(_ body: @escaping @Sendable () -> Void) {
        onSignal("no-more-pads", of: pointer) { _, _ in body() }
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

    /// GStreamer's classification, such as `Codec/Encoder/Video`.
    package var classification: String {
        gst_element_get_metadata(pointer, "klass").map { String(cString: $0) } ?? ""
    }

    /// Ends a source like at the end of its stream.
    package func sendEndOfStream() {
        gst_element_send_event(pointer, gst_event_new_eos())
    }
}
