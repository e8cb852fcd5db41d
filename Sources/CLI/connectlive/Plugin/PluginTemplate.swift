internal import MediaGraph

/// The files of a new plugin's package.
struct PluginTemplate {
    let name: String
    let kind: NewPlugin.Kind
    let kit: String

    /// What the node will be called in graphs.
    var nodeName: String { NodeKind.dashed(name) }

    /// The type may not have the module's name: it could not be told from it.
    private var type: String {
        switch kind {
        case .capturer: "\(name)Capturer"
        case .renderer: "\(name)Renderer"
        case .processor: "\(name)Processor"
        }
    }

    var files: [(path: String, text: String)] {
        [
            ("Package.swift", manifest), ("Sources/\(name)/\(type).swift", source),
            ("Sources/\(name)/Plugin.swift", entry), ("Tests/\(name)Tests/\(name)Tests.swift", test),
            ("example.yaml", graph), (".gitignore", ".build/\nPackage.resolved\n"),
        ]
    }

    private var manifest: String {
        """
        // swift-tools-version: 6.2
        import PackageDescription

        let kit = Context.environment["CONNECTLIVE_PLUGIN_KIT"] ?? "\(kit)"

        let package = Package(
            name: "\(name)",
            products: [.library(name: "\(name)", type: .dynamic, targets: ["\(name)"])],
            dependencies: [.package(name: "Media", path: kit)],
            targets: [
                .target(name: "\(name)", dependencies: [.product(name: "MediaGraph", package: "Media")]),
                .testTarget(
                    name: "\(name)Tests",
                    dependencies: ["\(name)", .product(name: "MediaGraph", package: "Media")]),
            ]
        )

        """
    }

    private var entry: String {
        """
        import MediaGraph

        @c(connectlive_plugin_\(name))
        public func plugin() -> Int32 { Plugin.provides(.\(kind.rawValue)(\(type).self)) }

        """
    }

    private var source: String {
        switch kind {
        case .capturer:
            """
            import MediaGraph

            public struct \(type): Capturer {
                public static let name = "\(nodeName)"
                public static let summary = "Pictures that get brighter, and are numbered"
                @Setting("Pictures per second", in: 1...60, unit: "frames/s") var fps = 30
                @Setting("How fast they get brighter", in: 1...50, isChangeable: true) var step = 2

                public init() {}

                public func format() -> PictureFormat {
                    PictureFormat(width: 640, height: 360, framesPerSecond: Double(fps))
                }

                public func capture(into output: CaptureOutput<PictureFormat>) async throws {
                    var number: UInt32 = 0
                    while true {
                        try await output.draw { picture in
                            let shade = UInt8(16 + Int(number) * step % 200)
                            picture.fill(luma: shade, chromaBlue: 128, chromaRed: 128)
                            picture.draw(barCode: number)
                        }
                        number += 1
                    }
                }
            }

            """
        case .renderer:
            """
            import MediaGraph

            public struct \(type): Renderer {
                public static let name = "\(nodeName)"
                public static let summary = "Says the size of every hundredth picture"
                @Setting("How many pictures for one line", in: 1...10_000, isChangeable: true) var every = 100

                public init() {}

                public func render(_ media: RenderStream<VideoFrame>) async throws {
                    var count = 0
                    for await picture in media {
                        count += 1
                        if count % every == 0 { print("\\(count) pictures, \\(picture.width)x\\(picture.height)") }
                    }
                }
            }

            """
        case .processor:
            """
            import MediaGraph

            public struct \(type): Processor {
                public static let name = "\(nodeName)"
                public static let summary = "Makes pictures brighter or darker"
                @Setting("How much is added", in: -200...200, isChangeable: true) var amount = 40

                public init() {}

                public mutating func process(_ picture: inout MutableVideoFrame) {
                    let amount = amount
                    picture.withPlane(.luma) { luma, _ in
                        for offset in 0..<luma.byteCount {
                            let value = Int(luma.bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                            luma.storeBytes(
                                of: UInt8(min(235, max(16, value + amount))), toByteOffset: offset, as: UInt8.self)
                        }
                    }
                }
            }

            """
        }
    }

    private var test: String {
        """
        import MediaGraph
        \(kind == .capturer ? "import MediaTesting\n" : "")import Testing
        import \(name)

        @Test("Its kind has a name, a sentence that explains it, and settings with ranges")
        func contract() {
            let kind = CustomNode.\(kind.rawValue)(\(type).self).kind
            #expect(kind.name == "\(nodeName)")
            #expect(!kind.summary.isEmpty)
            #expect(!kind.settings.isEmpty)
        }

        """ + (kind == .capturer ? conformance : "")
    }

    private var conformance: String {
        """

        @Test("Times, pace, leaving, failing and reopening are as a graph relies on")
        func conforms() async {
            let report = await Conformance.test(\(type).self)
            #expect(report.isPassed, "\\(report)")
        }

        """
    }

    private var graph: String {
        switch kind {
        case .capturer:
            """
            # Shows what \(nodeName) gives in the terminal; replace `terminal` by `publish` to send it into a room.
            chains:
              - - \(nodeName)
                - terminal

            """
        case .renderer:
            """
            # Gives \(nodeName) a test pattern.
            chains:
              - - test-pattern
                - \(nodeName)

            """
        case .processor:
            """
            # Shows in the terminal what \(nodeName) makes of a test pattern.
            chains:
              - - test-pattern
                - \(nodeName)
                - terminal

            """
        }
    }
}
