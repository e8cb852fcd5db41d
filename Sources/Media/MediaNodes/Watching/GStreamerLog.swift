internal import GStreamerKit

/// GStreamer's own log, with the names of nodes.
public enum GStreamerLog {
    /// A line that GStreamer wrote for its developers and that may matter to whoever runs a graph.
    public struct Line: Sendable, Hashable {
        /// Whether it is an error or a warning.
        public let isError: Bool
        /// The node that it is about; nil when it is about none.
        public let node: String?
        /// The element within the node, or what part of GStreamer speaks.
        public let source: String
        public let message: String
    }

    /// Hands every warning and error to `body` from now on; nil hands them to nobody. `body` is called on whatever thread
    /// speaks: it must be quick, and not call a pipeline.
    public static func listen(_ body: (@Sendable (Line) -> Void)?) {
        DebugLog.listen { line in
            guard let body else { return }
            let (node, element) = owner(of: line.path)
            body(
                Line(
                    isError: line.level == .error, node: node, source: element ?? line.category, message: line.message))
        }
        if body == nil { DebugLog.listen(nil) }
    }

    /// Elements are named after their nodes, a point, and their own name. A node that was added by an edit also has a
    /// number.
    private static func owner(of path: [String]) -> (node: String?, element: String?) {
        for name in path {
            guard let point = name.lastIndex(of: ".") else { continue }
            let prefix = name[..<point].split(separator: "~").first.map(String.init)
            return (prefix, String(name[name.index(after: point)...]))
        }
        return (nil, nil)
    }
}
