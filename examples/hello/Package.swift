// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "hello",
    // A copy of this package depends on the address of connectlive's repository: .package(url: …, branch: "main").
    dependencies: [.package(name: "connectlive", path: "../..")],
    targets: [
        .executableTarget(
            name: "hello",
            dependencies: [
                .product(name: "ConnectLiveSDK", package: "connectlive"),
                .product(name: "MediaGraph", package: "connectlive"),
            ])
    ]
)
