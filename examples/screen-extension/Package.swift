// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "screen-extension",
    // In a copy, change path: "../.." to the folder of the checkout, or to url: …, branch: "main".
    dependencies: [.package(name: "connectlive", path: "../..")],
    targets: [
        .executableTarget(
            name: "screen-extension", dependencies: [.product(name: "ConnectLiveSDK", package: "connectlive")])
    ]
)
