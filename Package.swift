// swift-tools-version: 6.2
import PackageDescription

// Every target is Swift 6, hides its imports unless it says otherwise, and treats warnings as errors.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
]

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"),
    .product(name: "NIOWebSocket", package: "swift-nio"),
]
let log: Target.Dependency = .product(name: "Logging", package: "swift-log")

/// One C library as a module map of our own; nothing outside GStreamerKit and PeerIO imports these.
func library(_ name: String, pkgConfig: String) -> Target {
    .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig)
}

/// A target that lives on a floor of the house; see docs/architecture.md.
func target(
    _ name: String, on floor: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/\(floor)/\(name)", exclude: exclude,
        swiftSettings: strict)
}

func tests(of name: String, with dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name)] + dependencies, path: "Tests/\(name)Tests",
        resources: resources, swiftSettings: strict)
}

let package = Package(
    name: "connectlive",
    products: [
        .library(name: "ConnectLiveSDK", targets: ["ConnectLiveSDK"]),
        .library(name: "MediaGraph", targets: ["MediaGraph"]),
        .library(name: "GraphFile", targets: ["GraphFile"]),
        .library(name: "MediaNodes", targets: ["MediaNodes"]),
        .executable(name: "connectlive", targets: ["connectlive"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        // System
        library("CGLib", pkgConfig: "glib-2.0 gobject-2.0"),
        library(
            "CGStreamer",
            pkgConfig:
                "gstreamer-1.0 gstreamer-app-1.0 gstreamer-audio-1.0 gstreamer-pbutils-1.0 gstreamer-rtp-1.0 gstreamer-video-1.0"
        ),
        library("CX11", pkgConfig: "x11"),
        library("CNice", pkgConfig: "nice"),
        library("CSRTP", pkgConfig: "libsrtp2"),
        library("COpenSSL", pkgConfig: "openssl"),
        .target(name: "CEmbeddedFiles", path: "Sources/System/CEmbeddedFiles"),
        // Media
        target("MediaGraph", on: "Media"),
        target("GraphFile", on: "Media", ["MediaGraph", .product(name: "Yams", package: "Yams")]),
        target("GStreamerKit", on: "Media", ["MediaGraph", "CGLib", "CGStreamer", "CX11"]),
        target("MediaNodes", on: "Media", ["MediaGraph", "GStreamerKit"]),
        // Transport
        target("RTP", on: "Transport"),
        target("PeerSession", on: "Transport", ["RTP"]),
        target("PeerIO", on: "Transport", ["RTP", "PeerSession", "CGLib", "CNice", "CSRTP", "COpenSSL"]),
        // Room
        target("RoomProtocol", on: "Room", ["RTP"]),
        target("EmbeddedFiles", on: "Room", ["CEmbeddedFiles"]),
        target(
            "RoomServer", on: "Room", ["EmbeddedFiles", "RoomProtocol", "RTP", "PeerSession", "PeerIO", log] + nio,
            exclude: ["Web"]),
        target(
            "RoomClient", on: "Room",
            ["RoomProtocol", "RTP", "PeerSession", "PeerIO", "MediaGraph", "MediaNodes", log] + nio),
        // SDK
        target("ConnectLiveSDK", on: "SDK", ["RoomClient", "RoomProtocol", "MediaGraph", "MediaNodes"]),
        // CLI
        .executableTarget(
            name: "connectlive",
            dependencies: [
                "ConnectLiveSDK", "EmbeddedFiles", "RoomServer", "RoomClient", "RoomProtocol", "MediaGraph",
                "MediaNodes", "GraphFile",
                log,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + nio,
            path: "Sources/CLI/connectlive", swiftSettings: strict),
        // Benchmarks
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "ConnectLiveSDK", "RoomServer", "RoomClient", "RoomProtocol", "RTP", "PeerSession", "PeerIO",
                "MediaGraph", log, .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + nio,
            path: "Benchmarks/Sources/benchmarks", swiftSettings: strict),
        .executableTarget(
            name: "media-benchmarks", dependencies: ["MediaGraph", "MediaNodes"],
            path: "Benchmarks/Sources/media-benchmarks", swiftSettings: strict),
        // The code of the README
        .executableTarget(
            name: "readme", dependencies: ["ConnectLiveSDK"], path: "examples/readme", swiftSettings: strict),
        // The example of docs/pipelines-in-swift.md
        .executableTarget(
            name: "compose", dependencies: ["MediaGraph", "MediaNodes"], path: "examples/compose",
            swiftSettings: strict),
        // Tests
        .target(
            name: "TestFixtures", path: "Tests/fixtures",
            exclude: ["README.md", "display.py", "pipewire_server.py", "rtsp_server.py", "sound_server.py"],
            swiftSettings: strict),
        tests(of: "MediaGraph"),
        tests(of: "GraphFile", with: ["MediaGraph"]),
        tests(of: "GStreamerKit", with: ["MediaGraph", "TestFixtures"]),
        tests(of: "MediaNodes", with: ["MediaGraph", "GStreamerKit", "GraphFile", "TestFixtures"]),
        tests(of: "RTP"),
        tests(of: "PeerSession", with: ["RTP"]),
        tests(of: "PeerIO", with: ["RTP", "PeerSession"]),
        tests(of: "RoomProtocol", with: ["RTP"]),
        tests(of: "EmbeddedFiles"),
        tests(of: "RoomServer", with: ["RoomProtocol", "RTP", "PeerSession", "PeerIO", log] + nio),
        tests(of: "RoomClient", with: ["RoomProtocol", "RoomServer"]),
        tests(of: "ConnectLiveSDK", with: ["RoomServer", "MediaGraph", "MediaNodes"]),
        tests(of: "connectlive"),
    ]
)
