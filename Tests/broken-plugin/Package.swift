// swift-tools-version: 6.2
import PackageDescription

// Capturers with faults that only a sanitizer detects, or that end or block their process. They show that
// `connectlive plugin test` detects them.
let package = Package(
    name: "BrokenPlugin",
    products: [.library(name: "BrokenPlugin", type: .dynamic, targets: ["BrokenPlugin"])],
    dependencies: [.package(name: "Media", path: "../../Sources/Media")],
    targets: [
        .target(name: "BrokenPlugin", dependencies: [.product(name: "MediaAuthoring", package: "Media")]),
        .testTarget(
            name: "BrokenPluginTests",
            dependencies: ["BrokenPlugin", .product(name: "MediaAuthoring", package: "Media")]),
    ]
)
