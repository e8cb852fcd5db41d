// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "hello",
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
