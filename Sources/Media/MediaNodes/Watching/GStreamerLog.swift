internal import GStreamerKit

/// GStreamer's own log, with the names of nodes.
public enum GStreamerLog {
    /// A warning or error that GStreamer logged.
    public struct Line: Sendable, Hashable {
        /// Whether it is an error or a warning.
        public let isError: Bool
        /// The node that logged it; nil if no node did.
        public let node: String?
        /// The element within the node, or the part of GStreamer.
        public let source: String
        /// The text, as GStreamer wrote it.
        public let message: String
    }

    /// Calls `body` for each warning and error from now on; nil ends this. The calls come on the thread that logs:
    /// return soon, and do not call a pipeline.
    public static func listen(_ body: (@Sendable (Line) -> Void)?) {
        guard let body else { return DebugLog.listen(nil) }
        DebugLog.listen { line in
            let (node, element) = owner(of: line.path)
            body(
                Line(
                    isError: line.isError, node: node, source: element ?? line.category, message: line.message))
        }
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
