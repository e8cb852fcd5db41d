// swift-tools-version: 6.2
import PackageDescription

// The plugin kit. In a copy, change "../../Sources/Media" to Sources/Media of the checkout, or set the variable.
let kit = Context.environment["CONNECTLIVE_PLUGIN_KIT"] ?? "../../Sources/Media"

let package = Package(
    name: "Darkroom",
    products: [.library(name: "Darkroom", type: .dynamic, targets: ["Darkroom"])],
    dependencies: [.package(name: "Media", path: kit)],
    targets: [
        .target(name: "Darkroom", dependencies: [.product(name: "MediaAuthoring", package: "Media")]),
        .testTarget(
            name: "DarkroomTests", dependencies: ["Darkroom", .product(name: "MediaAuthoring", package: "Media")]),
    ]
)
