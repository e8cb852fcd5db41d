internal import MediaGraph

/// The files of a new plugin's package.
struct PluginTemplate {
    let name: String
    let kind: NewPlugin.Kind
    let kit: String

    /// The node's name in graphs.
    var nodeName: String { CustomNode.dashed(name) }

    /// Differs from the module's name, because Swift could not distinguish them.
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
                .target(name: "\(name)", dependencies: [.product(name: "MediaAuthoring", package: "Media")]),
                .testTarget(
                    name: "\(name)Tests",
                    dependencies: ["\(name)", .product(name: "MediaAuthoring", package: "Media")]),
            ]
        )

        """
    }

    private var entry: String {
        """
        import MediaAuthoring

        @c(connectlive_plugin_\(name))
        public func plugin() -> Int32 { Plugin.provides(.\(kind.rawValue)(\(type).init)) }

        """
    }

    private var source: String {
        switch kind {
        case .capturer:
            """
            import MediaAuthoring

            public struct \(type): Capturer {
                public static let name = "\(nodeName)"
                public static let summary = "Numbered frames that get brighter"
                @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
                @Setting("Brightness step per frame", in: 1...50, isChangeable: true) var step = 2

                public init() {}

                public func format() -> PictureFormat {
                    PictureFormat(width: 640, height: 360, framesPerSecond: Double(fps))
                }

                public func capture(into output: CaptureOutput<PictureFormat>) async throws {
                    var number: UInt32 = 0
                    while true {
                        try await output.draw { frame in
                            let shade = UInt8(16 + Int(number) * step % 200)
                            frame.fill(luma: shade, chromaBlue: 128, chromaRed: 128)
                            frame.draw(barCode: number)
                        }
                        number += 1
                    }
                }
            }

            """
        case .renderer:
            """
            import MediaAuthoring

            public struct \(type): Renderer {
                public static let name = "\(nodeName)"
                public static let summary = "Prints the size of every hundredth frame"
                @Setting("Frames per printed line", in: 1...10_000, isChangeable: true) var every = 100

                public init() {}

                public func render(_ media: RenderStream<VideoFrame>) async throws {
                    var count = 0
                    for await frame in media {
                        count += 1
                        if count % every == 0 { print("\\(count) frames, \\(frame.width)x\\(frame.height)") }
                    }
                }
            }

            """
        case .processor:
            """
            import MediaAuthoring

            public struct \(type): Processor {
                public static let name = "\(nodeName)"
                public static let summary = "Makes frames brighter or darker"
                @Setting("Value added to the luma", in: -200...200, isChangeable: true) var amount = 40

                public init() {}

                public mutating func process(_ frame: inout MutableVideoFrame) {
                    let amount = amount
                    frame.withPlane(.luma) { luma, _ in
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
        import MediaAuthoring
        import MediaTesting
        import Testing
        import \(name)

        @Test("The node has a name, a summary, and settings")
        func contract() {
            #expect(\(type).name == "\(nodeName)")
            #expect(!\(type).summary.isEmpty)
            #expect(!\(type)().contracts.isEmpty)
        }

        @Test("The \(kind.rawValue) passes the conformance checks")
        func conforms() async {
            let report = await Conformance.test(\(type).init)
            #expect(report.isPassed, "\\(report)")
        }

        """
    }

    private var graph: String {
        switch kind {
        case .capturer:
            """
            # Shows \(nodeName) in the terminal. Replace `terminal` by `publish` to send it to a room.
            chains:
              - - \(nodeName)
                - terminal

            """
        case .renderer:
            """
            # Sends a test pattern to \(nodeName).
            chains:
              - - test-pattern
                - \(nodeName)

            """
        case .processor:
            """
            # Sends a test pattern through \(nodeName) and shows the result in the terminal.
            chains:
              - - test-pattern
                - \(nodeName)
                - terminal

            """
        }
    }
}
