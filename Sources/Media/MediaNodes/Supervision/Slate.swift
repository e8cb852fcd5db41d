import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// The frame of a source without a device: grey, with text or an image if the settings ask for it. Its elements run only
/// while it shows, in a pipeline of their own. A source of encoded video has it encoded once whenever it begins to show.
final class Slate: Sendable {
    private struct State {
        var drawn: MediaBuffer?
        var chain: DeviceChain?
        var isShown = false
    }

    /// Frames a second, so that a clock is right.
    private static let framesPerSecond = 5.0

    /// Nil for encoded video.
    private let grey: MediaBuffer?
    private let elements: [ElementPlan]
    private let prefix: String
    private let clock: PipelineClock
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "media.slate")

    /// `elements` draw it in this format, one after the other; none for a grey slate of raw video.
    init(_ format: MediaFormat, _ elements: [ElementPlan], named prefix: String, on clock: PipelineClock) {
        grey =
            format.kind == .rawVideo
            ? MediaBuffer(greyIn: format.encoding, width: format.width ?? 16, height: format.height ?? 16) : nil
        (self.elements, self.prefix, self.clock) = (elements, "\(prefix).slate", clock)
    }

    static let settings = [
        SettingContract(
            "slate-text", .text,
            "Text of the slate, with the time in the format of strftime, such as Back at %H:%M (default: none)"),
        SettingContract("slate-image", .text, "A PNG or JPEG file that the slate shows, scaled to the frame"),
    ]

    /// The elements that draw the slate of a source's settings; none for a grey one of raw video.
    static func plan(_ request: NodeRequest, _ format: MediaFormat) throws(MediaError) -> [ElementPlan] {
        let (text, image) = (request.given("slate-text"), request.given("slate-image"))
        let isEncoded = format.kind == .encodedVideo
        guard isEncoded || text != nil || image != nil else { return [] }
        let isNeeded = text != nil || image != nil || request.text("away") == "slate"
        guard format.width != nil, format.height != nil else {
            guard isNeeded else { return [] }
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message: "\"\(request.name)\": a slate needs the size of the frames. Set width and height.")
        }
        var plan = NodePlan(request.node)
        // An encoder needs one frame.
        plan.add(
            "videotestsrc", as: "grey",
            ["pattern": "solid-color", "foreground-color": .integer(0xff30_3030)].merging(
                isEncoded ? ["num-buffers": 1] : ["is-live": true]
            ) { $1 })
        plan.addFilter(
            RawFormat.video(
                .rawVideo(
                    isEncoded ? "I420" : format.encoding, width: format.width, height: format.height,
                    framesPerSecond: framesPerSecond)), as: "size")
        if let image {
            if let obstacle = request.environment.obstacle(toShowing: image) {
                throw OverlayNode.unreadable(image, of: request.name, obstacle)
            }
            try request.environment.require("gdkpixbufoverlay")
            plan.add(
                "gdkpixbufoverlay", as: "image",
                [
                    "location": .text(image), "overlay-width": .integer(format.width ?? 0),
                    "overlay-height": .integer(format.height ?? 0),
                ])
        }
        if let text {
            try request.environment.require("clockoverlay")
            plan.add(
                "clockoverlay", as: "text",
                [
                    "time-format": OverlayNode.plain(.text(text)), "halignment": "center", "valignment": "center",
                    "font-desc": "Sans 24",
                ])
        }
        if isEncoded {
            do throws(MediaError) {
                try plan.appendEncoder(of: format, keyframeInterval: 1, request.environment)
            } catch {
                // Without an encoder, nothing shows before the first frame of the device.
                guard !isNeeded else { throw error }
                return []
            }
        }
        return plan.elements
    }

    /// The frame to show. Nil for encoded video until it is encoded.
    var frame: MediaBuffer? { state.withLock { $0.drawn } ?? grey }

    /// Whether its elements run.
    var isDrawing: Bool { state.withLock { $0.chain != nil } }

    func show() { set(true) }

    func hide() { set(false) }

    private func set(_ isShown: Bool) {
        let isNews = state.withLock { state in
            defer { state.isShown = isShown }
            return state.isShown != isShown
        }
        if isNews, !elements.isEmpty { queue.async { [weak self] in self?.follow() } }
    }

    /// Starts or stops the elements.
    private func follow() {
        let (isShown, chain) = state.withLock { ($0.isShown, $0.chain) }
        if isShown, chain == nil {
            var plan = DevicePlan(name: "slate", wish: "")
            plan.elements = elements
            plan.links = zip(elements, elements.dropFirst()).map {
                ElementLink(from: ElementPad($0.name), to: ElementPad($1.name))
            }
            // Without its elements, it stays grey.
            let output = SourceOutput(
                deliver: { [weak self] buffer, _, _ in
                    let former = self?.state.withLock { state in
                        defer { state.drawn = buffer }
                        return state.drawn
                    }
                    withExtendedLifetime(former) {}
                    return true
                }, fail: { _ in })
            guard
                let made = try? DeviceChain(
                    plan, named: prefix, on: clock, for: output,
                    explain: { failure, _ in
                        MediaError(code: MediaError.Code.elementFailed, message: failure.message)
                    })
            else { return }
            state.withLock { $0.chain = made }
            try? made.play()
        } else if !isShown, let chain {
            chain.pipeline.stop()
            state.withLock { state in
                state.chain = nil
                if grey == nil { state.drawn = nil }
            }
        }
    }

    /// Stops its elements.
    func end() {
        hide()
        queue.sync {}
        state.withLock { $0.drawn = nil }
    }
}

extension NodeRequest {
    /// A text setting that is set and not empty: an unset variable leaves it empty.
    fileprivate func given(_ setting: String) -> String? {
        guard isGiven(setting) else { return nil }
        let text = text(setting)
        return text.isEmpty ? nil : text
    }
}
