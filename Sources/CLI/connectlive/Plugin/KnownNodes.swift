internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import PluginLoader
internal import RoomClient
internal import Synchronization

/// Which plugins a command is to know besides those of `CONNECTLIVE_PLUGIN_PATH`.
struct PluginFlags: ParsableArguments {
    @Option(
        name: .customLong("plugin"),
        help: "Load a plugin: a shared library, or the folder of a package that was built. May be repeated.",
        completion: .file())
    var paths: [String] = []

    func validate() throws {
        KnownNodes.want(paths)
    }
}

/// The kinds of nodes that a graph on the command line may be made of.
enum KnownNodes {
    /// Folders whose plugins are loaded, packages among them, with colons between.
    static let pathVariable = "CONNECTLIVE_PLUGIN_PATH"

    private struct State {
        var registry = RoomNodes.registry
        /// Nil for a command that has nothing to do with graphs.
        var wanted: [String]?
    }

    private static let state = Mutex(State())

    static var registry: NodeRegistry { state.withLock { $0.registry } }

    /// The command line asks for these.
    static func want(_ paths: [String]) {
        state.withLock { $0.wanted = ($0.wanted ?? []) + paths }
    }

    /// Loads what the command line and the environment ask for. What is asked for by name has to be loaded; a plugin in a
    /// folder that cannot be is told, as is such a folder, and the others are loaded.
    static func loadPlugins() throws {
        guard let wanted = state.withLock({ $0.wanted }) else { return }
        var seen: Set<String> = []
        for path in wanted where seen.insert(path).inserted { try add(path) }
        let folders = ProcessInfo.processInfo.environment[pathVariable]?.split(separator: ":").map(String.init) ?? []
        for folder in folders {
            tellingFailure { () throws(MediaError) in
                for path in try PluginLoader.plugins(in: folder) where seen.insert(path).inserted {
                    tellingFailure { () throws(MediaError) in try add(path) }
                }
            }
        }
    }

    private static func tellingFailure(_ body: () throws(MediaError) -> Void) {
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
