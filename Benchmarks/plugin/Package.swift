// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "DrawnFrames",
    products: [.library(name: "DrawnFrames", type: .dynamic, targets: ["DrawnFrames"])],
    dependencies: [.package(name: "Media", path: "../../Sources/Media")],
    targets: [.target(name: "DrawnFrames", dependencies: [.product(name: "MediaAuthoring", package: "Media")])]
)
