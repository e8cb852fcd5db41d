internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The value of an element's property.
package enum PropertyValue: Sendable, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByStringLiteral, ExpressibleByFloatLiteral
{
    case flag(Bool)
    case integer(Int)
    case number(Double)
    /// Text, the nick of an enumeration's value, flags joined by `+`, a fraction, or caps.
    case text(String)

    package init(booleanLiteral value: Bool) { self = .flag(value) }
    package init(integerLiteral value: Int) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .number(value) }
    package init(stringLiteral value: String) { self = .text(value) }

    var text: String {
        switch self {
        case .flag(let value): value ? "true" : "false"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .text(let value): value
        }
    }
}

/// A GStreamer element. The corresponding C type is `GstElement`.
// @unchecked: the pointer never changes, and reference counts, properties, pads and events of a GstElement are guarded
// by GStreamer's own locks.
package final class Element: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<GstElement>
    /// The factory that it came from, such as `vp8enc`.
    package let factory: String

    /// Makes an element. Throws `element.missing`, naming the Debian package, when the factory is not installed.
    package init(_ factory: String, name: String? = nil, _ properties: [String: PropertyValue] = [:]) throws(MediaError)
    {
        GStreamer.load()
        guard let made = gst_element_factory_make(factory, name) else {
            throw MediaError(
                code: MediaError.Code.elementMissing,
                message: "The GStreamer element \(factory) is not installed; on Debian it comes with "
                    + "\(GStreamer.debianPackage(of: factory)).")
        }
        gst_object_ref_sink(made)
        pointer = made
        self.factory = factory
        for (name, value) in properties { set(name, value) }
    }

    /// A capsfilter that lets only `caps` pass.
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

    // MARK: Properties

    package func has(_ property: String) -> Bool {
        g_object_class_find_property(classPointer, property) != nil
    }

    /// Sets a property. A name that the element does not have, or a value that does not fit, is a bug and traps.
    package func set(_ property: String, _ value: PropertyValue) {
        guard let specification = g_object_class_find_property(classPointer, property) else {
            preconditionFailure("\(factory) has no property \(property)")
        }
        var holder = GValue()
        g_value_init(&holder, specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        if g_type_fundamental(specification.pointee.value_type) == stringType {
            g_value_set_string(&holder, value.text)
        } else {
            let fits = gst_value_deserialize(&holder, value.text)
            precondition(fits != 0, "\(factory).\(property) cannot be \(value.text)")
        }
        g_object_set_property(asGObject, property, &holder)
    }

    /// Reads a property that is a number or a flag; 0 when it is none.
    package func integer(_ property: String) -> Int {
        guard has(property) else { return 0 }
        var holder = GValue()
        g_value_init(&holder, integerType)
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return Int(g_value_get_int64(&holder))
    }

    /// Reads a number from a property that is a structure, such as the statistics of a jitter buffer.
    package func integer(_ field: String, ofStructure property: String) -> Int {
        var holder = GValue()
        g_value_init(&holder, gst_structure_get_type())
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        guard let structure = gst_value_get_structure(&holder) else { return 0 }
        var value: UInt = 0
        return gst_structure_get_uint64(structure, field, &value) != 0 ? Int(value) : 0
    }

    private var classPointer: UnsafeMutablePointer<GObjectClass> {
        // What the C macro G_OBJECT_GET_CLASS does: an instance begins with the pointer to its class.
        UnsafeMutableRawPointer(pointer).load(as: UnsafeMutablePointer<GObjectClass>.self)
    }

    // MARK: Pads

    /// The pad of this name, if the element has it now.
    package func pad(_ name: String) -> Pad? {
        gst_element_get_static_pad(pointer, name).map(Pad.init(takingOwnership:))
    }

    /// The output of an element that has one. Traps when there is none.
    package var source: Pad {
        guard let pad = pad("src") else { preconditionFailure("\(factory) has no pad src") }
        return pad
    }

    /// The input of an element that has one. Traps when there is none.
    package var sink: Pad {
        guard let pad = pad("sink") else { preconditionFailure("\(factory) has no pad sink") }
        return pad
    }

    /// Asks for a new pad, as a tee or a compositor gives them.
    package func requestPad(_ template: String) -> Pad? {
        gst_element_request_pad_simple(pointer, template).map(Pad.init(takingOwnership:))
    }

    package func release(_ pad: Pad) {
        gst_element_release_request_pad(pointer, pad.pointer)
    }

    /// Calls `body` on a GStreamer thread for each pad that appears later, as those of a decodebin do.
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

    /// Calls `body` on a GStreamer thread when no further pads will appear.
    package func onNoMorePads(_ body: @escaping @Sendable () -> Void) {
        let thunk: @convention(c) (UnsafeMutablePointer<GstElement>?, UnsafeMutableRawPointer?) -> Void = { _, data in
            Box<@Sendable () -> Void>.value(at: data)?()
        }
        connect("no-more-pads", unsafeBitCast(thunk, to: GCallback.self), Box(body).retained)
    }

    private func connect(_ signal: String, _ callback: GCallback, _ data: UnsafeMutableRawPointer) {
        g_signal_connect_data(pointer, signal, callback, data, releaseBoxOfSignal, GConnectFlags(rawValue: 0))
    }

    // MARK: Links and states

    /// Links this element's output to the input of `next`.
    package func link(_ next: Element) throws(MediaError) {
        guard gst_element_link(pointer, next.pointer) != 0 else {
            throw MediaError(
                code: MediaError.Code.elementFailed,
                message: "The GStreamer elements \(factory) and \(next.factory) do not fit together.")
        }
    }

    /// Brings the element to READY and back to NULL: whether its device or display can be opened.
    package func canOpen() -> Bool {
        let answer = gst_element_set_state(pointer, GST_STATE_READY)
        gst_element_set_state(pointer, GST_STATE_NULL)
        return answer != GST_STATE_CHANGE_FAILURE
    }

    package func open() -> Bool {
        gst_element_set_state(pointer, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE
    }

    package func close() {
        gst_element_set_state(pointer, GST_STATE_NULL)
    }

    /// Brings an element that joined a running pipeline to the pipeline's state.
    package func followPipeline() {
        gst_element_sync_state_with_parent(pointer)
    }

    /// Nanoseconds on the monotonic clock at which the element's running time was 0.
    package var baseTime: UInt64 {
        UInt64(gst_element_get_base_time(pointer))
    }

    /// Ends a source as if it had come to its end.
    package func sendEndOfStream() {
        gst_element_send_event(pointer, gst_event_new_eos())
    }
}

// The C macros for the fundamental types are not imported: G_TYPE_MAKE_FUNDAMENTAL shifts a number by 2.
private let stringType: GType = 16 << 2
private let integerType: GType = 10 << 2
