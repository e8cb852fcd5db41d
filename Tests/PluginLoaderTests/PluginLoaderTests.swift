import Foundation
import MediaGraph
import MediaNodes
import PluginLoader
import Synchronization
import TestFixtures
import Testing
import TestSupport

/// A plugin's package that the test builds against the plugin kit of this checkout, as an author would.
@Suite(.serialized) struct PluginLoaderTests {
    /// A folder that is removed with the value.
    private final class Folder {
        let url: URL

        init() throws {
            url = FileManager.default.temporaryDirectory.appendingPathComponent("plugins-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(at: url) }

        func write(_ text: String, to path: String) throws {
            let file = url.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
    }

    /// Compiles one file of C to a shared library.
    private func library(_ source: String, in folder: Folder, _ flags: [String] = []) throws -> String {
        try folder.write(source, to: "library.c")
        try BuiltPackage.run("clang", ["-shared", "-fPIC", "-o", "library.so", "library.c"] + flags, in: folder.url)
        return folder.url.appendingPathComponent("library.so").path
    }

    private func refusal(of path: String) throws -> MediaError {
        try #require(#expect(throws: MediaError.self) { _ = try PluginLoader.load(path) })
    }

    @Test("A plugin built against the kit is loaded, and its capturer runs in a graph")
    func loads() async throws {
        let folder = try Folder()
        try folder.write(
            """
            // swift-tools-version: 6.2
            import PackageDescription
            let package = Package(
                name: "Shades",
                products: [.library(name: "Shades", type: .dynamic, targets: ["Shades"])],
                dependencies: [.package(name: "Media", path: "\(Checkout.folder.path)/Sources/Media")],
                targets: [.target(name: "Shades", dependencies: [.product(name: "MediaAuthoring", package: "Media")])]
            )
            """, to: "Package.swift")
        try folder.write(
            """
            import MediaAuthoring

            struct GreyShades: Capturer {
                static let summary = "Frames of one shade"
                @Setting("How bright", in: 16...235) var shade = 100
                func format() -> PictureFormat { PictureFormat(width: 320, height: 180, framesPerSecond: 30) }
                func capture(into output: CaptureOutput<PictureFormat>) async throws {
                    var number: UInt32 = 0
                    while true {
                        try await output.draw { picture in
                            picture.fill(luma: UInt8(shade))
                            picture.draw(barCode: number)
                        }
                        number += 1
                    }
                }
            }

            @c(connectlive_plugin_Shades)
            public func plugin() -> Int32 { Plugin.provides(.capturer(GreyShades.init)) }
            """, to: "Sources/Shades/Shades.swift")
        let bench = try Workbench()
        try bench.put(folder.url)
        try bench.build()

        let nodes = try PluginLoader.load(bench.package.path)
        #expect(nodes.map(\.kind.name) == ["grey-shades"])
        let registry = try NodeRegistry.builtIn.adding(nodes)
        let seen = Numbers()
        var bindings = NodeBindings()
        bindings.frames["view"] = { seen.append($0.barCode) }
        let graph = MediaGraph {
            Chain {
                Node("grey-shades", settings: ["shade": 50])
                Node.frames("view")
            }
        }
        let pipeline = try await MediaPipeline(graph, bindings: bindings, registry: registry)
        try await pipeline.start()
        try await seen.wait(for: 30)
        await pipeline.stop()
        let numbers = seen.all.compactMap(\.self)
        #expect(numbers.count == seen.all.count)
        #expect(numbers == numbers.sorted())

        #expect(try refusal(of: bench.package.path).code == "plugin.loaded")

        // Truncated at any length, the same file is refused with a message, and none of it is mapped.
        let whole = try Data(contentsOf: bench.package.appendingPathComponent(".build/debug/libShades.so"))
        for length in [0, 3, 40, 64, 500, whole.count / 2, whole.count - 1] {
            let cut = folder.url.appendingPathComponent("cut-\(length).so")
            try whole.prefix(length).write(to: cut)
            #expect(try refusal(of: cut.path).code == "plugin.unreadable", "cut at \(length)")
        }
    }

    @Test("Files that are not plugins are refused with specific messages")
    func refusals() throws {
        let folder = try Folder()
        #expect(try refusal(of: folder.url.path + "/none.so").code == "plugin.not-found")
        #expect(try refusal(of: folder.url.path).code == "plugin.not-found")
        try folder.write("hello", to: "text.so")
        #expect(try refusal(of: folder.url.path + "/text.so").code == "plugin.unreadable")
        #expect(try refusal(of: "/proc/self/exe").message.contains(".so") == false)
        let plain = try library("int f(void) { return 0; }", in: folder)
        #expect(try refusal(of: plain).code == "plugin.not-a-plugin")
        // A plugin that does not share MediaAuthoring would register nodes that the program does not see.
        let alone = try library("int connectlive_plugin_Alone(void) { return 0; }", in: folder)
        #expect(try refusal(of: alone).message.contains("libMediaAuthoring.so"))
    }

    @Test("A plugin built against another MediaAuthoring is refused with the missing symbol")
    func missingSymbol() throws {
        let folder = try Folder()
        let media = Self.mediaLibraryFolder
        let path = try library(
            """
            extern int media_that_is_gone(void);
            int connectlive_plugin_Old(void) { return media_that_is_gone(); }
            """, in: folder,
            ["-L\(media)", "-Wl,--no-as-needed", "-lMediaAuthoring", "-Wl,--unresolved-symbols=ignore-all"])
        let error = try refusal(of: path)
        #expect(error.code == "plugin.incompatible")
        #expect(error.message.contains("media_that_is_gone"))
    }

    @Test("A plugin whose entry returns an error or provides nothing is refused")
    func emptyEntry() throws {
        for (body, word) in [("7", "7"), ("0", "no node")] {
            let folder = try Folder()
            let path = try library(
                "int connectlive_plugin_Empty\(body)(void) { return \(body); }", in: folder,
                ["-L\(Self.mediaLibraryFolder)", "-Wl,--no-as-needed", "-lMediaAuthoring"])
            #expect(try refusal(of: path).message.contains(word))
        }
    }

    @Test("A package's own, newest plugin is loaded and reported")
    func newest() throws {
        let folder = try Folder()
        let path = try library(
            "int connectlive_plugin_Own(void) { return 0; }", in: folder,
            ["-L\(Self.mediaLibraryFolder)", "-Wl,--no-as-needed", "-lMediaAuthoring"])
        let own = try Data(contentsOf: URL(fileURLWithPath: path))
        /// Copies the file there, with an age of this many seconds.
        func build(_ file: String, age: Double) throws {
            let url = folder.url.appendingPathComponent(file)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            // Replaces the old file instead of writing into it, because that one is loaded.
            try own.write(to: url, options: .atomic)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: url.path)
        }
        /// The loaded file of the folder, from the error for a second load, and the message about the choice.
        func loaded() throws -> (file: String, choice: String?) {
            var choice: String?
            let error = try #require(
                #expect(throws: MediaError.self) { _ = try PluginLoader.load(folder.url.path) { choice = $0 } })
            #expect(error.message.contains("provides no node"))
            return (String(error.message.dropFirst(folder.url.path.count).prefix { $0 != " " }), choice)
        }
        try build(".build/release/libOwn.so", age: 100)
        #expect(try loaded() == ("/.build/release/libOwn.so", nil))
        try build(".build/debug/libOwn.so", age: 50)
        let newer = try loaded()
        #expect(newer.file == "/.build/debug/libOwn.so")
        #expect(newer.choice?.contains("/.build/release/libOwn.so") == true)
        try build(".build/release/libOwn.so", age: 20)
        #expect(try loaded().file == "/.build/release/libOwn.so")
        // The library of a package that it depends on is there too.
        try build(".build/debug/libAnother.so", age: 0)
        #expect(try loaded().file == "/.build/debug/libAnother.so")
        try folder.write("let p = [.library(\n name: \"Own\", type: .dynamic)]", to: "Package.swift")
        #expect(try loaded().file == "/.build/release/libOwn.so")
    }

    @Test("A plugin of another generation or compiler is refused before its nodes are used")
    func stamps() {
        let generation = Plugin.admit {
            Plugin.isAdmitted(generation: 99, compiler: "any") ? 0 : 1
        }
        #expect(generation.refusal?.contains("generation 99") == true)
        let compiler = Plugin.admit {
            Plugin.isAdmitted(generation: Plugin.generation(), compiler: "Swift 1") ? 0 : 1
        }
        #expect(compiler.refusal?.contains("Swift 1") == true)
        #expect(compiler.nodes.isEmpty)
        #expect(!Plugin.isAdmitted(generation: Plugin.generation(), compiler: "any"), "nobody is being loaded")
    }

    /// Where the tests' own libMediaAuthoring.so is.
    private static let mediaLibraryFolder = Checkout.path(".build/debug")
}

/// Numbers that arrive on another thread.
private final class Numbers: Sendable {
    private let stream: AsyncStream<Int>
    private let input: AsyncStream<Int>.Continuation
    private let state = Mutex<[UInt32?]>([])

    init() {
        (stream, input) = AsyncStream.makeStream(of: Int.self)
    }

    var all: [UInt32?] { state.withLock { $0 } }

    func append(_ number: UInt32?) {
        input.yield(
            state.withLock {
                $0.append(number); return $0.count
            })
    }

    func wait(for count: Int) async throws {
        for await reached in stream where reached >= count { return }
    }
}
