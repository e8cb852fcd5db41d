// swift-tools-version: 6.2
import PackageDescription

// The plugin kit. In a copy, change "../../Sources/Media" to Sources/Media of the checkout, or set the variable.
let kit = Context.environment["CONNECTLIVE_PLUGIN_KIT"] ?? "../../Sources/Media"

let package = Package(
    name: "DesktopRegion",
    products: [.library(name: "DesktopRegion", type: .dynamic, targets: ["DesktopRegion"])],
    dependencies: [.package(name: "Media", path: kit)],
    targets: [
        .target(name: "DesktopRegion", dependencies: [.product(name: "MediaAuthoring", package: "Media")]),
        .testTarget(
            name: "DesktopRegionTests",
            dependencies: ["DesktopRegion", .product(name: "MediaAuthoring", package: "Media")]),
    ]
)
