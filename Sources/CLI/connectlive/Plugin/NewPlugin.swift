internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import MediaNodes

struct NewPlugin: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Write the package of a plugin that builds, passes its tests and can be loaded.",
        discussion: "The package depends on the plugin kit that this program came with; CONNECTLIVE_PLUGIN_KIT names "
            + "another.")

    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case capturer, renderer, processor
    }

    @Argument(
        help: "The name of the plugin's module and folder, such as ClockFace, whose type is then ClockFaceCapturer.")
    var name: String

    @Option(help: "What it brings: capturer, renderer or processor.") var kind = Kind.capturer

    func validate() throws {
        let isName =
            name.first.map { $0.isASCII && $0.isUppercase } == true
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        guard isName else {
            throw ValidationError(
                "\"\(name)\" cannot name a plugin: it begins with a capital letter and has letters and digits only, as "
                    + "ClockFace does.")
        }
        guard !["MediaGraph", "MediaTesting", "Swift", "Foundation", "Testing", "Dispatch"].contains(name) else {
            throw ValidationError("\(name) is the name of a module that there is; choose another.")
        }
    }

    func run() throws {
        let files = FileManager.default
        guard !files.fileExists(atPath: name) else {
            throw CommandFailure(
                code: MediaError.Code.fileUnwritable,
                "There is a file or folder \(name) here already; choose another name.")
        }
        let kit = try PluginKit.find()
        let package = PluginTemplate(name: name, kind: kind, kit: kit)
        guard KnownNodes.registry.kind(named: package.nodeName) == nil else {
            throw CommandFailure(
                code: MediaError.Code.nodeNameTaken,
                "The node of a plugin \(name) would be \"\(package.nodeName)\", which comes with connectlive; choose "
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
                code: MediaError.Code.fileUnwritable, "\(name) cannot be written: \(error.localizedDescription)")
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

/// The package that plugins are built against: `MediaGraph` and `MediaTesting`.
enum PluginKit {
    static let variable = "CONNECTLIVE_PLUGIN_KIT"

    /// Where it is: named by the environment, in the prefix that this program was installed to, or in the checkout that
    /// it was built in.
    static func find() throws -> String {
        if let named = ProcessInfo.processInfo.environment[variable] {
            guard isKit(named) else {
                throw CommandFailure(
                    code: MediaError.Code.fileNotFound,
                    "\(variable) names \(named), which holds no plugin kit: no Package.swift with MediaGraph beside it."
                )
            }
            // It is written into packages that lie elsewhere.
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
            "There is no plugin kit beside \(program.path); name one by \(variable), or run connectlive from where "
                + "\"make install\" put it.")
    }

    private static func isKit(_ folder: String) -> Bool {
        ["Package.swift", "MediaGraph"].allSatisfy { FileManager.default.fileExists(atPath: "\(folder)/\($0)") }
    }
}
