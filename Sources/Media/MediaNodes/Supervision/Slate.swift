import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// The frame of a source without a device: grey, with text or an image if the settings ask for it. Its elements run only
/// while it shows, in a pipeline of their own.
final class Slate: Sendable {
    private struct State {
        var drawn: MediaBuffer?
        var chain: DeviceChain?
        var isShown = false
    }

    /// Frames a second, so that a clock is right.
    private static let framesPerSecond = 5.0

    private let grey: MediaBuffer
    private let elements: [ElementPlan]
    private let prefix: String
    private let clock: PipelineClock
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "media.slate")

    /// `elements` draw it, one after the other; none for a grey slate.
    init(width: Int, height: Int, _ elements: [ElementPlan], named prefix: String, on clock: PipelineClock) {
        grey = MediaBuffer(.grey(width: width, height: height))
        (self.elements, self.prefix, self.clock) = (elements, "\(prefix).slate", clock)
    }

    static let settings = [
        SettingContract(
            "slate-text", .text,
            "Text of the slate, with the time in the format of strftime, such as Back at %H:%M (default: none)"),
        SettingContract("slate-image", .text, "A PNG or JPEG file that the slate shows, scaled to the frame"),
    ]

    /// The elements that draw the slate of a source's settings; none for a grey one.
    static func plan(_ request: NodeRequest, _ format: MediaFormat) throws(MediaError) -> [ElementPlan] {
        let (text, image) = (request.given("slate-text"), request.given("slate-image"))
        guard text != nil || image != nil else { return [] }
        var plan = NodePlan(request.node)
        plan.add(
            "videotestsrc", as: "grey",
            ["is-live": true, "pattern": "solid-color", "foreground-color": .integer(0xff30_3030)])
        plan.addFilter(
            RawFormat.video(
                .rawVideo(width: format.width ?? 0, height: format.height ?? 0, framesPerSecond: framesPerSecond)),
            as: "size")
        if let image {
            if let obstacle = request.environment.obstacle(toReading: image) {
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
        return plan.elements
    }

    var frame: MediaBuffer { state.withLock { $0.drawn } ?? grey }

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
                deliver: { [weak self] buffer, _ in
                    let former = self?.state.withLock { state in
                        defer { state.drawn = buffer }
                        return state.drawn
                    }
                    withExtendedLifetime(former) {}
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
            state.withLock { $0.chain = nil }
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
