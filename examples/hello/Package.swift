// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "hello",
    // A copy of this package depends on the address of connectlive's repository alone: .package(url: …, branch: "main").
    // MediaGraph is then a product of connectlive.
    dependencies: [.package(name: "connectlive", path: "../.."), .package(path: "../../Sources/Media")],
    targets: [
        .executableTarget(
            name: "hello",
            dependencies: [
                .product(name: "ConnectLiveSDK", package: "connectlive"),
                .product(name: "MediaGraph", package: "Media"),
            ])
    ]
)
