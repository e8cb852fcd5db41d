// swift-tools-version: 6.2
import PackageDescription

// The plugin kit. In a copy, change "../../Sources/Media" to Sources/Media of the checkout, or set the variable.
let kit = Context.environment["CONNECTLIVE_PLUGIN_KIT"] ?? "../../Sources/Media"

let package = Package(
    name: "QRCode",
    products: [.library(name: "QRCode", type: .dynamic, targets: ["QRCode"])],
    dependencies: [.package(name: "Media", path: kit)],
    targets: [
        .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        .target(name: "QRCode", dependencies: ["CQREncode", .product(name: "MediaAuthoring", package: "Media")]),
        .testTarget(name: "QRCodeTests", dependencies: ["QRCode", .product(name: "MediaAuthoring", package: "Media")]),
    ]
)
