import GStreamerKit
import MediaGraph

/// Changes size or rate. With one of width and height given, the other follows from the picture's shape.
enum ScaleNode {
    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let rate = try assembly.element("videorate", of: node, ["skip-to-first": true])
        let scale = try assembly.element("videoscale", of: node)
        var caps = Assembly.rawVideo
        if let width = node.integer("width") { caps += ",width=\(width)" }
        if let height = node.integer("height") { caps += ",height=\(height)" }
        if node.integer("width") != nil || node.integer("height") != nil { caps += ",pixel-aspect-ratio=1/1" }
        if let fps = node.number("fps") { caps += ",framerate=\(fraction(fps))" }
        let filter = try assembly.filter(caps, of: node)
        if node.number("fps") == nil {
            try assembly.link(scale, filter)
            assembly.pipeline.remove(rate)
            assembly.accept("in", of: node, into: scale)
        } else {
            try assembly.link(rate, scale, filter)
            assembly.accept("in", of: node, into: rate)
        }
        assembly.provide("out", of: node, from: filter)
    }
}
