package import GStreamerKit
public import MediaGraph

/// Writes text, the time or an image over frames, in place.
package struct OverlayNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "overlay", .processor, "Draws text, the time or an image over frames", inputs: .rawVideoIn,
        outputs: .rawVideoOut,
        settings: [
            SettingContract("text", .text, default: "", isChangeable: true, "The text; may have several lines"),
            SettingContract(
                "position", Overlay.Position.settingDomain, default: "bottom-left", isChangeable: true,
                "Place of the text"),
            SettingContract(
                "x", .integer(-8192...8192), default: 0, isChangeable: true, unit: "pixels",
                "Offset to the right of that place"),
            SettingContract(
                "y", .integer(-8192...8192), default: 0, isChangeable: true, unit: "pixels", "Offset below that place"),
            SettingContract(
                "font-size", .integer(4...400), default: 18, isChangeable: true, unit: "points",
                "Font size on a frame 640 pixels wide; grows with the frame"),
            SettingContract(
                "color", .text, default: "#ffffff", isChangeable: true,
                "Color of the text"
            ).written("#[0-9A-Fa-f]{6}", "red, green and blue as #rrggbb, such as #ffcc00"),
            SettingContract(
                "shaded", .flag, default: false, isChangeable: true,
                "Whether to darken the frame behind the text"),
            SettingContract(
                "clock", .text, "Format of the time (default: no clock)"
            ).written(#"(?:[\s\S]*%[\s\S]*)?"#, "a format of strftime, such as %H:%M:%S"),
            SettingContract(
                "clock-position", Overlay.Position.settingDomain, default: "top-right", isChangeable: true,
                "Place of the clock"),
            SettingContract("image", .text, "A PNG or JPEG file to draw over the frame"),
            SettingContract(
                "image-x", .integer(-8192...8192), default: 16, isChangeable: true, unit: "pixels",
                "Left edge of the image; negative counts from the right"),
            SettingContract(
                "image-y", .integer(-8192...8192), default: 16, isChangeable: true, unit: "pixels",
                "Top edge of the image; negative counts from the bottom"),
            SettingContract(
                "image-width", .integer(0...8192), default: 0, isChangeable: true, unit: "pixels",
                "Width of the image; 0 is its own"),
            SettingContract(
                "image-height", .integer(0...8192), default: 0, isChangeable: true, unit: "pixels",
                "Height of the image; 0 is its own"),
            SettingContract(
                "image-opacity", .number(0...1), default: 1, isChangeable: true, "From 0 (invisible) to 1"),
        ])

    // It retains this node.
    private unowned let instance: NodeInstance

    /// A property of one of the node's elements.
    private typealias Property = (element: String, name: String, value: SettingValue)

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        // Always present, so that text can be set while frames pass. Does nothing without text.
        var elements = [("text", "textoverlay")]
        if !request.text("clock").isEmpty { elements.append(("clock", "clockoverlay")) }
        let image = request.text("image")
        if !image.isEmpty {
            if let obstacle = request.environment.obstacle(toShowing: image) {
                throw unreadable(image, of: request.name, obstacle)
            }
            elements.append(("image", "gdkpixbufoverlay"))
        }
        let properties = kind.settings.flatMap { contract in
            request.node.setting(contract.name, of: kind).map { Self.properties(contract.name, $0) } ?? []
        }
        for (name, factory) in elements {
            try request.environment.require(factory)
            plan.add(factory, as: name, name == "text" ? ["wait-text": false] : [:])
            for property in properties where property.element == name {
                plan.elements[plan.elements.count - 1].properties[property.name] = property.value
            }
        }
        plan.addFilter(RawFormat.video, as: "format")
        // The text overlays also have an input for subtitles.
        let inputs = elements.map { ElementPad($0, $1 == "gdkpixbufoverlay" ? nil : "video_sink") }
        for (element, next) in zip(elements, inputs.dropFirst()) { plan.link(ElementPad(element.0), next) }
        plan.link(elements.last?.0 ?? "text", "format")
        plan.inputs["in"] = inputs[0]
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = request.input("in") ?? .rawVideo()
        if request.sharedInputs.contains("in") {
            plan.notes.append("other nodes use the frames too, so each is copied once")
        }
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        OverlayNode(instance: instance)
    }

    package func check(_ setting: String, to value: SettingValue) throws(MediaError) {
        _ = try present(setting, value)
    }

    /// The properties of the elements that the node has.
    private func present(_ setting: String, _ value: SettingValue) throws(MediaError) -> [Property] {
        let properties = Self.properties(setting, value)
        let present = properties.filter { instance.has($0.element) }
        guard present.isEmpty else { return present }
        throw MediaError(
            code: MediaError.Code.settingUnusable,
            message:
                "\"\(instance.name)\" has no \(properties.first?.element ?? setting), so its \(setting) cannot "
                + "change. Start it with one.")
    }

    package func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        for property in try present(setting, value) {
            let element = instance.element(property.element)
            guard property.name == "font-desc", let upstream = element.pad("video_sink")?.peer else {
                try element.set(property.name, property.value)
                continue
            }
            // GStreamer draws without the lock that guards the font, and crashes if the font changes meanwhile.
            upstream.whenIdle { _ = element.trySet(property.name, property.value) }
        }
        return true
    }

    package func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        guard failure.path.first?.hasSuffix(".image") == true else { return nil }
        return Self.unreadable(
            instance.text("image"), of: instance.name, "it does not exist, or is not an image",
            cause: failure.message)
    }

    static func unreadable(
        _ path: String, of node: String, _ reason: String, cause: String? = nil
    ) -> MediaError {
        MediaError(
            code: MediaError.Code.fileUnreadable,
            message: "\"\(node)\" cannot read the image \(path): \(reason). Use an existing PNG or JPEG file.",
            cause: cause, node: node)
    }

    // MARK: Settings and properties

    private static func properties(_ setting: String, _ value: SettingValue) -> [Property] {
        switch setting {
        case "text": return [("text", "text", plain(value))]
        case "position": return alignment(value, of: "text")
        case "clock-position": return alignment(value, of: "clock")
        case "x": return [("text", "deltax", value)]
        case "y": return [("text", "deltay", value)]
        case "font-size":
            let font = SettingValue.text("Sans \(value.integer ?? 18)")
            return [("text", "font-desc", font), ("clock", "font-desc", font)]
        case "color":
            // Opaque, as alpha, red, green and blue from the highest byte down.
            let color = SettingValue.integer(0xff00_0000 | (Int(value.text?.dropFirst() ?? "", radix: 16) ?? 0))
            return [("text", "color", color), ("clock", "color", color)]
        case "shaded":
            return [("text", "shaded-background", value), ("clock", "shaded-background", value)]
        case "clock": return [("clock", "time-format", plain(value))]
        case "image": return [("image", "location", value)]
        case "image-x": return [("image", "offset-x", value)]
        case "image-y": return [("image", "offset-y", value)]
        case "image-width": return [("image", "overlay-width", value)]
        case "image-height": return [("image", "overlay-height", value)]
        case "image-opacity": return [("image", "alpha", value)]
        default: preconditionFailure("an overlay has no setting \(setting)")
        }
    }

    /// Escapes text, because the elements parse it as Pango markup.
    static func plain(_ value: SettingValue) -> SettingValue {
        let escapes: [Character: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;"]
        return .text((value.text ?? "").map { escapes[$0] ?? String($0) }.joined())
    }

    private static func alignment(_ value: SettingValue, of element: String) -> [Property] {
        let position = value.text ?? ""
        let across = position.hasSuffix("left") ? "left" : position.hasSuffix("right") ? "right" : "center"
        let down = position.hasPrefix("top") ? "top" : position.hasPrefix("bottom") ? "bottom" : "center"
        return [(element, "halignment", .text(across)), (element, "valignment", .text(down))]
    }
}

/// Draws text, the time or an image over frames.
public struct Overlay: MediaNode {
    /// A place in the frame.
    public enum Position: String, SettingChoice {
        /// At the top, on the left.
        case topLeft = "top-left"
        /// In the middle of the top.
        case top
        /// At the top, on the right.
        case topRight = "top-right"
        /// In the middle of the height: on the left, in the center or on the right.
        case left, center, right
        /// At the bottom, on the left.
        case bottomLeft = "bottom-left"
        /// In the middle of the bottom.
        case bottom
        /// At the bottom, on the right.
        case bottomRight = "bottom-right"
    }

    /// A PNG or JPEG file to draw over the frame.
    public struct Image: Sendable {
        /// The path of the file.
        public var path: String
        /// Its left edge in pixels; negative counts from the right.
        public var x: Int?
        /// Its top edge in pixels; negative counts from the bottom.
        public var y: Int?
        /// In pixels; nil for its own.
        public var width: Int?
        /// In pixels; nil for its own.
        public var height: Int?
        /// From 0 (invisible) to 1.
        public var opacity: Double?

        /// An image by its path. Places and sizes are in pixels.
        public init(
            path: String, x: Int? = nil, y: Int? = nil, width: Int? = nil, height: Int? = nil, opacity: Double? = nil
        ) {
            (self.path, self.x, self.y, self.width, self.height, self.opacity) = (path, x, y, width, height, opacity)
        }
    }

    public var handle: NodeHandle

    /// An overlay. Nil values are the defaults, which `connectlive nodes overlay` lists.
    ///
    /// - Parameters:
    ///   - text: may have several lines.
    ///   - x: pixels to the right of the position.
    ///   - y: pixels below the position.
    ///   - fontSize: in points on a frame 640 pixels wide; grows with the frame.
    ///   - color: red, green and blue as `#rrggbb`.
    ///   - isShaded: whether to darken the frame behind the text.
    ///   - clock: a format of strftime, such as `%H:%M:%S`.
    public init(
        text: String? = nil, position: Position? = nil, x: Int? = nil, y: Int? = nil, fontSize: Int? = nil,
        color: String? = nil, isShaded: Bool? = nil, clock: String? = nil, clockPosition: Position? = nil,
        image: Image? = nil
    ) {
        handle = NodeHandle(
            OverlayNode.kind,
            [
                "text": text, "position": position, "x": x, "y": y, "font-size": fontSize, "color": color,
                "shaded": isShaded, "clock": clock, "clock-position": clockPosition, "image": image?.path,
                "image-x": image?.x, "image-y": image?.y, "image-width": image?.width, "image-height": image?.height,
                "image-opacity": image?.opacity,
            ])
    }

    /// Changes the text.
    ///
    /// - Throws: `node.not-running`, as all setters.
    public func setText(_ text: String) async throws(MediaError) { try await change("text", to: text) }
    /// Changes the place of the text. Throws like `setText`.
    public func setPosition(_ position: Position) async throws(MediaError) {
        try await change("position", to: position)
    }
    /// Changes the pixels to the right of the position.
    ///
    /// - Throws: like `setText`.
    public func setX(_ pixels: Int) async throws(MediaError) { try await change("x", to: pixels) }
    /// Changes the pixels below the position.
    ///
    /// - Throws: like `setText`.
    public func setY(_ pixels: Int) async throws(MediaError) { try await change("y", to: pixels) }
    /// Changes the font size, in points on a frame 640 pixels wide.
    ///
    /// - Throws: like `setText`.
    public func setFontSize(_ points: Int) async throws(MediaError) { try await change("font-size", to: points) }
    /// Changes the color of the text, such as `#ffcc00`.
    ///
    /// - Throws: like `setText`.
    public func setColor(_ color: String) async throws(MediaError) { try await change("color", to: color) }
    /// Changes whether the frame is darkened behind the text. Throws like `setText`.
    public func setShaded(_ isShaded: Bool) async throws(MediaError) { try await change("shaded", to: isShaded) }
    /// Changes the place of the time. Throws like `setText`.
    public func setClockPosition(_ position: Position) async throws(MediaError) {
        try await change("clock-position", to: position)
    }
    /// Changes the left edge of the image, in pixels; negative counts from the right.
    ///
    /// - Throws: like `setText`.
    public func setImageX(_ pixels: Int) async throws(MediaError) { try await change("image-x", to: pixels) }
    /// Changes the top edge of the image, in pixels; negative counts from the bottom.
    ///
    /// - Throws: like `setText`.
    public func setImageY(_ pixels: Int) async throws(MediaError) { try await change("image-y", to: pixels) }
    /// Changes the width of the image, in pixels; 0 is its own.
    ///
    /// - Throws: like `setText`.
    public func setImageWidth(_ pixels: Int) async throws(MediaError) { try await change("image-width", to: pixels) }
    /// Changes the height of the image, in pixels; 0 is its own.
    ///
    /// - Throws: like `setText`.
    public func setImageHeight(_ pixels: Int) async throws(MediaError) { try await change("image-height", to: pixels) }
    /// Changes the opacity of the image, from 0 (invisible) to 1.
    ///
    /// - Throws: like `setText`.
    public func setImageOpacity(_ opacity: Double) async throws(MediaError) {
        try await change("image-opacity", to: opacity)
    }
}
