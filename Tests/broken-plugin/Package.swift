// swift-tools-version: 6.2
import PackageDescription

// Capturers that are broken in ways that only a sanitizer sees, or that end or hold up the process in which they run:
// they show that `connectlive plugin test` finds them.
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
