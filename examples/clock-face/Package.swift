// swift-tools-version: 6.2
import PackageDescription

// The plugin kit. In a copy, change "../../Sources/Media" to Sources/Media of the checkout, or set the variable.
let kit = Context.environment["CONNECTLIVE_PLUGIN_KIT"] ?? "../../Sources/Media"

let package = Package(
    name: "ClockFace",
    products: [.library(name: "ClockFace", type: .dynamic, targets: ["ClockFace"])],
    dependencies: [.package(name: "Media", path: kit)],
    targets: [
        .target(name: "ClockFace", dependencies: [.product(name: "MediaAuthoring", package: "Media")]),
        .testTarget(
            name: "ClockFaceTests", dependencies: ["ClockFace", .product(name: "MediaAuthoring", package: "Media")]),
    ]
)
