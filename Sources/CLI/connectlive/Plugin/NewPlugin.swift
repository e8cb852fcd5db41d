internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import MediaNodes

struct NewPlugin: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Create the package of a plugin that builds, passes its tests and loads.",
        discussion: "The package depends on the plugin kit of this program. CONNECTLIVE_PLUGIN_KIT selects another kit."
    )

    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case capturer, renderer, processor
    }

    @Argument(
        help: "Name of the module and folder. ClockFace, for example, has the type ClockFaceCapturer.")
    var name: String

    @Option(help: "Kind of node: capturer, renderer or processor.") var kind = Kind.capturer

    func validate() throws {
        let isName =
            name.first.map { $0.isASCII && $0.isUppercase } == true
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        guard isName else {
            throw ValidationError(
                "\"\(name)\" cannot name a plugin. Use ASCII letters and digits, and begin with a capital, such as "
                    + "ClockFace.")
        }
        let modules = [
            "MediaAuthoring", "MediaGraph", "MediaTesting", "Swift", "Foundation", "Testing", "Dispatch",
        ]
        guard !modules.contains(name) else {
            throw ValidationError("\(name) is the name of an existing module. Choose another name.")
        }
    }

    func run() throws {
        let files = FileManager.default
        guard !files.fileExists(atPath: name) else {
            throw CommandFailure(
                code: MediaError.Code.fileUnwritable,
                "\(name) exists already. Choose another name.")
        }
        let kit = try PluginKit.find()
        let package = PluginTemplate(name: name, kind: kind, kit: kit)
        guard KnownNodes.registry.kind(named: package.nodeName) == nil else {
            throw CommandFailure(
                code: MediaError.Code.nodeNameTaken,
                "The node of \(name) would be called \"\(package.nodeName)\", which is a built-in node. Choose "
                    + "another name.")
        }
        do {
            for (path, text) in package.files {
                let target = URL(fileURLWithPath: name).appendingPathComponent(path)
                try files.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: target)
            }
        } catch {
            throw CommandFailure(
                code: MediaError.Code.fileUnwritable, "Cannot write \(name): \(error.localizedDescription)")
        }
        Console.say(
            """
            Wrote \(name): the \(kind.rawValue) \(package.nodeName). Next:
              cd \(name) && swift build && swift test
              connectlive nodes \(package.nodeName) --plugin .
              connectlive run example.yaml --plugin .
            """)
    }
}

/// The package that plugins are built against: `MediaAuthoring` and `MediaTesting`.
enum PluginKit {
    static let variable = "CONNECTLIVE_PLUGIN_KIT"

    /// The kit's folder: named by the environment, in the prefix of this installed program, or in the checkout that
    /// built it.
    static func find() throws -> String {
        if let named = ProcessInfo.processInfo.environment[variable] {
            guard isKit(named) else {
                throw CommandFailure(
                    code: MediaError.Code.fileNotFound,
                    "\(variable) names \(named), which is not a plugin kit. Name a folder with Package.swift and "
                        + "MediaAuthoring."
                )
            }
            // The path is written into packages in other folders, so it has to be absolute.
            return URL(fileURLWithPath: named).standardizedFileURL.path
        }
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let prefix = program.deletingLastPathComponent().deletingLastPathComponent()
        let installed = prefix.appendingPathComponent("share/connectlive/plugin-kit").path
        if isKit(installed) { return installed }
        var folder = program.deletingLastPathComponent()
        while folder.path != "/" {
            let kit = folder.appendingPathComponent("Sources/Media").path
            if isKit(kit) { return kit }
            folder.deleteLastPathComponent()
        }
        throw CommandFailure(
            code: MediaError.Code.fileNotFound,
            "There is no plugin kit near \(program.path). Set \(variable) to the kit's folder, or run the connectlive "
                + "that \"make install\" installed.")
    }

    private static func isKit(_ folder: String) -> Bool {
        ["Package.swift", "MediaAuthoring"].allSatisfy { FileManager.default.fileExists(atPath: "\(folder)/\($0)") }
    }
}
