package import MediaGraph

/// Raw formats between nodes, in GStreamer's notation.
package enum RawFormat {
    /// Frames of any size.
    package static let video = "video/x-raw,format=I420"
    package static let audio = "audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=2"

    /// Frames of the known part of a format.
    package static func video(_ format: MediaFormat) -> String {
        "video/x-raw,format=\(format.encoding)" + format.sizeAndRate
    }
}

/// A frame rate in GStreamer's notation. 29.97 and similar rates get the denominator used in television.
package func fraction(_ framesPerSecond: Double) -> String {
    if framesPerSecond == framesPerSecond.rounded() { return "\(Int(framesPerSecond))/1" }
    let television = (framesPerSecond * 1001 / 1000).rounded()
    if abs(television * 1000 / 1001 - framesPerSecond) < 0.01 { return "\(Int(television) * 1000)/1001" }
    return "\(Int((framesPerSecond * 1000).rounded()))/1000"
}

extension NodePlan {
    /// Adds a sink that accepts every buffer immediately. The work happens in a probe on its input.
    package mutating func addSink(as name: String = "sink") {
        add("fakesink", as: name, Self.sinkProperties)
    }

    /// Adds elements that convert audio of any format to that of the graph: from `convert` to `format`.
    mutating func addSoundConversion(_ prefix: String = "") {
        add("audioconvert", as: prefix + "convert")
        append("audioresample", as: prefix + "resample")
        appendFilter(RawFormat.audio, as: prefix + "format")
    }

    static let sinkProperties: [String: SettingValue] = [
        "sync": false, "async": false, "enable-last-sample": false, "qos": false,
    ]
}

extension NodePlan {
    /// Links the elements in their order, and enters the first one by the input `in`.
    mutating func chain() {
        for (from, to) in zip(elements, elements.dropFirst()) { link(from.name, to.name) }
        inputs["in"] = elements.first.map { ElementPad($0.name) }
    }

    /// Links the elements in their order, from the input `in` to the output `out`, which has this format.
    mutating func chain(to format: MediaFormat) {
        chain()
        outputs["out"] = elements.last.map { ElementPad($0.name) }
        formats["out"] = format
    }
}
