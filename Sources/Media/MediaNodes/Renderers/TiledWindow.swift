import Dispatch
internal import GStreamerKit
public import MediaGraph
import Synchronization

/// A window that shows several streams side by side. Tiles can be added and removed while it is open.
///
/// Calls may come from any thread. We do not copy frames. If frames arrive faster than the window can draw them, it
/// drops frames.
public final class TiledWindow: Sendable {
    private struct Tile {
        let source: PushSource
        let crop: Element
        let filter: Element
        /// From the source to the filter.
        let elements: [Element]
        let pad: Pad
        var format: (width: Int, height: Int) = (0, 0)
        var fit = FrameFit.whole
    }

    private struct State {
        var tiles: [String: Tile] = [:]
        /// Identifiers in the order of addition, which is the order on the screen.
        var order: [String] = []
        var isClosed = false
    }

    /// How many frames of a tile may wait to be drawn.
    private static let waiting = 2

    private let pipeline: Pipeline
    private let mixer: Element
    private let control: DispatchQueue
    private let width: Int
    private let height: Int
    private let state = Mutex(State())
    private let counter = Counter()
    private let connection: XWatch<XConnections.Break>?

    /// Whether there is a display to open a window on. Blocks for some milliseconds.
    public static var isPossible: Bool {
        let sink = DisplaySystem.openWindowSink()
        sink?.close()
        return sink != nil
    }

    /// Opens an empty window. Blocks for tens of milliseconds.
    ///
    /// - Parameter onClose: called once, on any thread, when the user closes the window or the display ends.
    /// - Throws: `window.unavailable` or `element.missing`.
    public init(
        title: String, width: Int = 1280, height: Int = 720, onClose: (@Sendable () -> Void)? = nil
    ) throws(MediaError) {
        let isClosed = AtomicBool()
        pipeline = Pipeline { message in
            guard case .error = message, !isClosed.exchange(true) else { return }
            onClose?()
        }
        let control = DispatchQueue(label: "media.tiled-window")
        self.control = control
        // Before the window is opened, because older events are not watched.
        let watch = DisplaySystem.x.map { display in
            XConnections.watch(display) {
                control.async { if !isClosed.exchange(true) { onClose?() } }
            }
        }
        self.width = width
        self.height = height
        // Not ignore-inactive-pads: GStreamer 1.22 ends the stream while no pad has had a frame.
        mixer = try Element("compositor", ["background": "black"])
        // Keeps the window open and its clock running without tiles.
        let background = try Element("videotestsrc", ["is-live": true, "pattern": "black"])
        let size = try Element.filter("video/x-raw,format=I420,width=\(width),height=\(height),framerate=30/1")
        let convert = try Element("videoconvert")
        let shown = try Element.filter("video/x-raw,width=\(width),height=\(height),framerate=30/1")
        // Last, because an open sink must be in a pipeline, which closes it, before another step can fail.
        let sink = try WindowNode.openSink()
        connection = DisplaySystem.isX(sink.factory) ? watch : nil
        for element in [background, size, mixer, shown, convert, sink] { pipeline.add(element) }
        try background.link(size)
        guard let pad = mixer.requestPad("sink_%u"), size.source.link(pad) else {
            preconditionFailure("the compositor accepts no frame")
        }
        try mixer.link(shown)
        try shown.link(convert)
        try convert.link(sink)
        WindowNode.setTitle(title, after: convert)
        let counter = counter
        convert.source.watchBuffers { _ in _ = counter.next() }
        if !pipeline.play() {
            throw MediaError(
                code: MediaError.Code.windowUnavailable,
                message: "The window cannot be opened. Run it in a desktop session, or without a window.")
        }
    }

    deinit {
        let isClosed = state.withLock { $0.isClosed }
        guard !isClosed else { return }
        control.async { [pipeline] in pipeline.stop() }
    }

    /// How often the window was drawn.
    package var picturesDrawn: Int { counter.count }

    /// Adds an empty tile after the others. Does nothing if there is one with this name.
    public func addTile(_ id: String) {
        control.async { [weak self] in self?.makeTile(id) }
    }

    /// Removes a tile; the others close the gap. Does nothing if there is none with this name.
    public func removeTile(_ id: String) {
        control.async { [weak self] in self?.dropTile(id) }
    }

    /// Sets how the frames of a tile fill it: whole by default. Does nothing if there is no tile with this name.
    package func setFit(_ fit: FrameFit, of id: String) {
        control.async { [weak self] in
            guard let self else { return }
            state.withLock { $0.tiles[id]?.fit = fit }
            arrange()
        }
    }

    /// Shows a frame in a tile. Never blocks. Does nothing if there is no tile with this name.
    public func show(_ frame: VideoFrame, in id: String) {
        let target = state.withLock { state -> (source: PushSource, isNew: Bool)? in
            guard !state.isClosed, let tile = state.tiles[id] else { return nil }
            let isNew = tile.format.width != frame.width || tile.format.height != frame.height
            if isNew { state.tiles[id]?.format = (frame.width, frame.height) }
            return (tile.source, isNew)
        }
        guard let target, target.source.waiting < Self.waiting else { return }
        let buffer = frame.buffer
        if target.isNew { target.source.setFormat(of: buffer) }
        _ = target.source.push(buffer, timestamp: pipeline.runningTime)
    }

    /// Closes the window. May be called repeatedly.
    public func close() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            control.async {
                let isFirst = self.state.withLock { state in
                    defer {
                        state.isClosed = true
                        state.tiles = [:]
                    }
                    return !state.isClosed
                }
                if isFirst { self.pipeline.stop() }
                continuation.resume()
            }
        }
    }

    // MARK: On the control queue

    private func makeTile(_ id: String) {
        let isTaken = state.withLock { $0.isClosed || $0.tiles[id] != nil }
        guard !isTaken, let pad = mixer.requestPad("sink_%u"),
            let source = try? PushSource(),
            let queue = try? Element("queue", ["leaky": "downstream", "max-size-buffers": 2, "silent": true]),
            let crop = try? Element("aspectratiocrop"),
            let scale = try? Element("videoscale", ["add-borders": true]),
            // Delayed: frames of the size before a change may still be in transit.
            let filter = try? Element(
                "capsfilter", ["caps": "video/x-raw,pixel-aspect-ratio=1/1", "caps-change-mode": "delayed"])
        else { return }
        let elements = [source.element, queue, crop, scale, filter]
        for element in elements { pipeline.add(element) }
        // From the end: the crop accepts no link to the scaler while its source has no format.
        let isLinked =
            filter.source.link(pad)
            && zip(elements, elements.dropFirst()).reversed().allSatisfy { (try? $0.link($1)) != nil }
        guard isLinked else {
            preconditionFailure("elements for any video have no common format")
        }
        _ = pad.trySet("zorder", 1)
        state.withLock { state in
            state.tiles[id] = Tile(
                source: source, crop: crop, filter: filter, elements: elements, pad: pad)
            state.order.append(id)
        }
        arrange()
        for element in elements.reversed() { element.followPipeline() }
    }

    private func dropTile(_ id: String) {
        let removed = state.withLock { state -> Tile? in
            state.order.removeAll { $0 == id }
            return state.tiles.removeValue(forKey: id)
        }
        guard let removed else { return }
        // The tile's thread may be waiting inside the compositor, and closing its queue would wait for it in turn.
        removed.source.element.close()
        removed.pad.refuseEverything()
        for element in removed.elements { element.close() }
        removed.filter.source.unlink(removed.pad)
        mixer.release(removed.pad)
        for element in removed.elements { pipeline.remove(element) }
        arrange()
    }

    /// Arranges the tiles in a grid that is as square as their number allows.
    private func arrange() {
        let tiles = state.withLock { state in state.order.compactMap { state.tiles[$0] } }
        for (tile, place) in zip(tiles, MixerLayout.tiles(tiles.count, width: width, height: height)) {
            let shape = tile.fit == .filling ? "\(place.width)/\(place.height)" : "0/1"
            _ = tile.crop.trySet("aspect-ratio", .text(shape))
            // The scaler keeps shapes, with borders. Only the compositor changes them.
            let isStretched = tile.fit == .stretched
            let size = isStretched ? "" : ",width=\(place.width),height=\(place.height)"
            _ = tile.filter.trySet("caps", .text("video/x-raw\(size),pixel-aspect-ratio=1/1"))
            _ = tile.pad.trySet("width", .integer(isStretched ? place.width : -1))
            _ = tile.pad.trySet("height", .integer(isStretched ? place.height : -1))
            _ = tile.pad.trySet("xpos", .integer(place.x))
            _ = tile.pad.trySet("ypos", .integer(place.y))
        }
    }
}
