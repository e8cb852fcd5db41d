// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "hello",
    // In a copy, change path: "../.." to the folder of the checkout, or to url: …, branch: "main".
    dependencies: [.package(name: "connectlive", path: "../..")],
    targets: [
        .executableTarget(
            name: "hello", dependencies: [.product(name: "ConnectLiveSDK", package: "connectlive")])
    ]
)
