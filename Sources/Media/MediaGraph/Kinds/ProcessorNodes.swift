/// Processors in Swift; what is left out has the default of its kind.
extension Node {
    /// Changes size or rate; what is nil stays as it comes.
    public static func scale(
        _ name: String = "scale", width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil
    ) -> Node {
        var settings: [String: SettingValue] = [:]
        if let width { settings["width"] = .integer(width) }
        if let height { settings["height"] = .integer(height) }
        if let framesPerSecond { settings["fps"] = .number(framesPerSecond) }
        return Node("scale", name: name, given: settings)
    }

    /// Changes the pixel format; most nodes take I420 only and have this put before them by the planner.
    public static func convert(_ name: String = "convert", pixelFormat: String = "I420") -> Node {
        Node("convert", name: name, given: ["pixel-format": .text(pixelFormat)])
    }

    /// Changes the rate. Without `repeats`, pictures are repeated only where too few come.
    public static func rate(_ name: String = "rate", framesPerSecond: Double, repeats: Bool? = nil) -> Node {
        var settings: [String: SettingValue] = ["fps": .number(framesPerSecond)]
        if let repeats { settings["repeat"] = .flag(repeats) }
        return Node("rate", name: name, given: settings)
    }

    /// Cuts pixels off the edges.
    public static func crop(
        _ name: String = "crop", left: Int = 0, right: Int = 0, top: Int = 0, bottom: Int = 0
    ) -> Node {
        Node(
            "crop", name: name,
            given: [
                "left": .integer(left), "right": .integer(right), "top": .integer(top), "bottom": .integer(bottom),
            ])
    }

    /// Cuts to a shape such as `16:9`, keeping the middle.
    public static func crop(_ name: String = "crop", shape: String) -> Node {
        Node("crop", name: name, given: ["shape": .text(shape)])
    }

    /// Swaps left and right; `direction` is `horizontal`, `vertical` or `none`.
    public static func mirror(_ name: String = "mirror", direction: String = "horizontal") -> Node {
        Node("mirror", name: name, given: ["direction": .text(direction)])
    }

    /// Turns clockwise by 0, 90, 180 or 270 degrees.
    public static func rotate(_ name: String = "rotate", degrees: Int = 90) -> Node {
        Node("rotate", name: name, given: ["degrees": .integer(degrees)])
    }

    /// Writes over pictures. `clock` is the time as strftime writes it, `image` the path of a PNG or JPEG file.
    public static func overlay(
        _ name: String = "overlay", text: String = "", position: String = "bottom-left", clock: String? = nil,
        image: String? = nil
    ) -> Node {
        var settings: [String: SettingValue] = ["text": .text(text), "position": .text(position)]
        if let clock { settings["clock"] = .text(clock) }
        if let image { settings["image"] = .text(image) }
        return Node("overlay", name: name, given: settings)
    }

    /// Puts the pictures of inputs `in1`, `in2` and so on into one; `layout` is `picture-in-picture` or `grid`.
    public static func mixer(
        _ name: String = "mixer", layout: String = "picture-in-picture", width: Int? = nil, height: Int? = nil,
        framesPerSecond: Double? = nil
    ) -> Node {
        var settings: [String: SettingValue] = ["layout": .text(layout)]
        if let width { settings["width"] = .integer(width) }
        if let height { settings["height"] = .integer(height) }
        if let framesPerSecond { settings["fps"] = .number(framesPerSecond) }
        return Node("mixer", name: name, given: settings)
    }

    /// Hands each picture to the function that the program has bound to `name`.
    public static func frameFunction(_ name: String) -> Node {
        Node("frame-function", name: name)
    }

    /// Multiplies samples by `volume`.
    public static func volume(_ name: String = "volume", volume: Double = 1, mute: Bool = false) -> Node {
        Node("volume", name: name, given: ["volume": .number(volume), "mute": .flag(mute)])
    }

    /// Measures how loud sound is over each `interval` of seconds.
    public static func level(_ name: String = "level", interval: Double = 0.1) -> Node {
        Node("level", name: name, given: ["interval": .number(interval)])
    }

    /// Adds the sounds of inputs `in1`, `in2` and so on up.
    public static func audioMixer(_ name: String = "audio-mixer") -> Node {
        Node("audio-mixer", name: name)
    }

    /// Takes what enters by `played` and leaves by `played-out` out of what enters by `in`.
    public static func echoCancel(
        _ name: String = "echo-cancel", suppression: String = "low", noiseSuppression: String = "moderate",
        gainControl: Bool = false
    ) -> Node {
        Node(
            "echo-cancel", name: name,
            given: [
                "suppression": .text(suppression), "noise-suppression": .text(noiseSuppression),
                "gain-control": .flag(gainControl),
            ])
    }
}
