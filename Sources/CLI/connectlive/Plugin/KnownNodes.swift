internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import PluginLoader
internal import RoomClient
internal import Synchronization

/// The plugins to load besides those of `CONNECTLIVE_PLUGIN_PATH`.
struct PluginFlags: ParsableArguments {
    @Option(
        name: .customLong("plugin"),
        help: "Load a plugin: a shared library, or the folder of a built package. Repeatable.",
        completion: .file())
    var paths: [String] = []

    func validate() throws {
        KnownNodes.want(paths)
    }
}

/// The kinds of nodes available to graphs on the command line.
enum KnownNodes {
    /// Folders of plugins or of plugin packages, separated by colons.
    static let pathVariable = "CONNECTLIVE_PLUGIN_PATH"

    private struct State {
        var registry = RoomNodes.registry
        /// Nil for a command that does not use graphs.
        var wanted: [String]?
    }

    private static let state = Mutex(State())

    static var registry: NodeRegistry { state.withLock { $0.registry } }

    /// Adds plugins of the command line.
    static func want(_ paths: [String]) {
        state.withLock { $0.wanted = ($0.wanted ?? []) + paths }
    }

    /// Loads the plugins of the command line and of the environment. A plugin named on the command line has to load.
    /// For those in a folder, a failure is printed and the others load.
    static func loadPlugins() throws {
        guard let wanted = state.withLock({ $0.wanted }) else { return }
        var seen: Set<String> = []
        for path in wanted where seen.insert(path).inserted { try add(path) }
        let folders = ProcessInfo.processInfo.environment[pathVariable]?.split(separator: ":").map(String.init) ?? []
        for folder in folders {
            reportingFailure { () throws(MediaError) in
                for path in try PluginLoader.plugins(in: folder) where seen.insert(path).inserted {
                    reportingFailure { () throws(MediaError) in try add(path) }
                }
            }
        }
    }

    private static func reportingFailure(_ body: () throws(MediaError) -> Void) {
        do {
            try body()
        } catch {
            Console.error("\(error)")
        }
    }

    private static func add(_ path: String) throws(MediaError) {
        let nodes = try PluginLoader.load(path) { Console.error($0) }
        let registry = try registry.adding(nodes)
        state.withLock { $0.registry = registry }
    }
}
