import GStreamerKit
public import MediaGraph

/// Swaps left and right, or top and bottom.
package enum MirrorNode: NodeType {
    package static let kind = NodeKind(
        "mirror", .processor, "Mirrors frames horizontally or vertically", inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: [
            SettingContract(
                "direction", .choice(["horizontal", "vertical", "none"]), default: "horizontal", isChangeable: true,
                "Whether to swap left and right, or top and bottom")
        ])

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFlip(direction(request.text("direction")))
        plan.formats["out"] = request.input("in") ?? .rawVideo()
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        FlipNode(name: instance.name, flip: instance.element("flip"), setting: "direction") { $0.text.map(direction) }
    }

    private static func direction(_ name: String) -> String {
        switch name {
        case "horizontal": "horiz"
        case "vertical": "vert"
        default: "identity"
        }
    }
}

/// Rotates frames clockwise.
package enum RotateNode: NodeType {
    package static let kind = NodeKind(
        "rotate", .processor, "Rotates frames clockwise", inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: [
            SettingContract(
                "degrees", .integer(0...270), default: 90, isChangeable: true, unit: "degrees",
                "Angle; 90 and 270 swap width and height"
            ).limited(to: [0, 90, 180, 270])
        ])

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let degrees = request.integer("degrees")
        guard let direction = direction(degrees) else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message: "\"\(request.name)\" cannot rotate by \(degrees) degrees. Use 0, 90, 180 or 270.")
        }
        var plan = NodePlan(request.node)
        plan.addFlip(direction)
        var format = request.input("in") ?? .rawVideo()
        if degrees == 90 || degrees == 270 { (format.width, format.height) = (format.height, format.width) }
        plan.formats["out"] = format
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        FlipNode(name: instance.name, flip: instance.element("flip"), setting: "degrees") {
            $0.integer.flatMap(direction)
        }
    }

    private static func direction(_ degrees: Int) -> String? {
        [0: "identity", 90: "90r", 180: "180", 270: "90l"][degrees]
    }
}

extension NodePlan {
    fileprivate mutating func addFlip(_ direction: String) {
        add("videoflip", as: "flip", ["video-direction": .text(direction)])
        addFilter(RawFormat.video, as: "format")
        link("flip", "format")
        inputs["in"] = ElementPad("flip")
        outputs["out"] = ElementPad("format")
    }
}

/// Changes the direction while frames pass. If width and height are swapped, announces new caps downstream.
private struct FlipNode: RunningNode {
    let name: String
    let flip: Element
    let setting: String
    let direction: @Sendable (SettingValue) -> String?

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard setting == self.setting else { return false }
        guard let direction = direction(value) else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message: "\"\(name)\" cannot rotate by \(value) degrees. Use 0, 90, 180 or 270.")
        }
        try flip.set("video-direction", .text(direction))
        return true
    }
}

extension Node {
    /// Mirrors frames. `direction` is `horizontal`, `vertical` or `none`.
    public static func mirror(_ name: String = "mirror", direction: String? = nil) -> Node {
        Node(MirrorNode.kind, name, ["direction": direction])
    }

    /// Rotates frames clockwise by 0, 90, 180 or 270 degrees.
    public static func rotate(_ name: String = "rotate", degrees: Int? = nil) -> Node {
        Node(RotateNode.kind, name, ["degrees": degrees])
    }
}
