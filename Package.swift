// swift-tools-version: 6.2
import Foundation
import PackageDescription

// Every target is Swift 6, hides its imports by default, and treats warnings as errors.
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
let tls: [Target.Dependency] = [
    "RoomTLS", .product(name: "NIOSSL", package: "swift-nio-ssl"), .product(name: "NIOTLS", package: "swift-nio"),
]
let log: Target.Dependency = .product(name: "Logging", package: "swift-log")

/// Set by scripts/fuzz, which builds one statically linked program around libFuzzer.
let isFuzzing = Context.environment["CONNECTLIVE_FUZZ"] != nil

// Plugins and the program share one MediaAuthoring, so it is a package of its own; see Sources/Media/Package.swift. A
// package that has another one inside cannot be fetched by its address: there MediaAuthoring is a target of this one, and
// loads no plugins. (The folder is "/" while dependencies are resolved, and lies in "checkouts" once it was fetched.)
let isFetched =
    Context.packageDirectory.contains("/checkouts/") || Context.packageDirectory == "/" || isFuzzing
let authoring: Target.Dependency =
    isFetched ? "MediaAuthoring" : .product(name: "MediaAuthoring", package: "Media")
/// The conformance kit is in the same library.
let kit: [Target.Dependency] = isFetched ? ["MediaTesting"] : [authoring]

/// SDL, for the window of examples/conference. Nothing else needs it.
let sdl: [Target] =
    FileManager.default.fileExists(atPath: "/usr/include/SDL2/SDL_ttf.h")
    ? [.systemLibrary(name: "CSDL", path: "examples/conference/Sources/CSDL")] : []

/// Of a checkout alone: the package with nodes, and the one that stands in for Apple's Combine in samples of applications.
let local: [Package.Dependency] =
    isFetched
    ? []
    : [
        .package(path: "Sources/Media"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    ]

/// A C library as a module map of this package. Only GStreamerKit and PeerIO import these.
func library(_ name: String, pkgConfig: String) -> Target {
    .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig)
}

/// A target of a layer; see docs/architecture.md.
func target(
    _ name: String, on layer: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = [],
    resources: [Resource] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/\(layer)/\(name)", exclude: exclude,
        resources: resources, swiftSettings: strict)
}

func tests(
    of name: String, with dependencies: [Target.Dependency] = [], exclude: [String] = [], resources: [Resource] = []
) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name), "TestSupport"] + dependencies,
        path: "Tests/\(name)Tests", exclude: exclude, resources: resources, swiftSettings: strict)
}

/// Stands in for Combine in the samples of the original documentation. The tests of fetched packages are not built.
let combine: [Target.Dependency] =
    isFetched ? [] : [.product(name: "OpenCombine", package: "OpenCombine")]

/// Code with the settings of a client's package.
func samples(_ name: String, mode: SwiftLanguageMode) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: ["ConnectLiveSDK", "RoomServer", "TestFixtures", "TestSupport", log] + combine,
        path: "Tests/\(name)Tests",
        swiftSettings: [.swiftLanguageMode(mode), .treatAllWarnings(as: .error)])
}

let package = Package(
    name: "connectlive",
    products: [
        .library(name: "ConnectLiveSDK", targets: ["ConnectLiveSDK"]),
        .library(name: "MediaGraph", targets: ["MediaGraph"]),
        .library(name: "RoomSimulation", targets: ["RoomSimulation"]),
        .library(name: "GraphFile", targets: ["GraphFile"]),
        .library(name: "MediaNodes", targets: ["MediaNodes"]),
        .library(name: "FrameSocket", targets: ["FrameSocket"]),
        .executable(name: "connectlive", targets: ["connectlive"]),
    ],
    dependencies: local + [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        // System
        library("CGLib", pkgConfig: "glib-2.0 gobject-2.0"),
        library("CX11", pkgConfig: "x11"),
        library("CNice", pkgConfig: "glib-2.0 gobject-2.0"),
        library("CPulse", pkgConfig: "glib-2.0 gobject-2.0"),
        library("CSRTP", pkgConfig: "libsrtp2"),
        library("COpenSSL", pkgConfig: "openssl"),
        .target(name: "CEmbeddedFiles", path: "Sources/System/CEmbeddedFiles"),
        .target(name: "CGStreamer", dependencies: ["CGLib"], path: "Sources/System/CGStreamer"),
        .target(name: "CLinux", path: "Sources/System/CLinux"),
        .target(name: "CV4L2", path: "Sources/System/CV4L2"),
        .target(name: "CDatagrams", path: "Sources/System/CDatagrams"),
        .target(name: "CXConnections", dependencies: ["CX11"], path: "Sources/System/CXConnections"),
        // Media
        target("MediaGraph", on: "Media", [authoring]),
        target("GraphFile", on: "Media", ["MediaGraph", .product(name: "Yams", package: "Yams")]),
        target(
            "GStreamerKit", on: "Media",
            ["MediaGraph", "CGLib", "CGStreamer", "CPulse", "CX11", "CXConnections"],
            resources: [.embedInCode("element-packages.txt")]),
        target("FrameSocket", on: "Media", ["CLinux"]),
        target("ChildProcesses", on: "Media", ["CLinux"]),
        target("Cameras", on: "Media", ["MediaGraph", "CV4L2"]),
        target(
            "MediaNodes", on: "Media", ["MediaGraph", "GStreamerKit", "FrameSocket", "ChildProcesses", "Cameras"] + kit),
        target("PluginLoader", on: "Media", [authoring]),
        // Transport
        target("RTP", on: "Transport"),
        target("CongestionControl", on: "Transport", ["RTP"]),
        target("PeerSession", on: "Transport", ["RTP", "CongestionControl"]),
        target("PeerLoop", on: "Transport", ["RTP", "PeerSession"]),
        target("ICELite", on: "Transport", ["RTP"]),
        target(
            "PeerIO", on: "Transport",
            [
                "RTP", "ICELite", "PeerSession", "PeerLoop", "CDatagrams", "CLinux", "CGLib", "CNice", "CSRTP",
                "COpenSSL",
            ]),
        // Room
        target("RoomProtocol", on: "Room", ["RTP"]),
        target("EmbeddedFiles", on: "Room", ["CEmbeddedFiles"]),
        target("RoomTLS", on: "Room", [.product(name: "NIOSSL", package: "swift-nio-ssl")]),
        target("ServerCore", on: "Room", ["RoomProtocol", "RTP", "CongestionControl", "PeerSession", "PeerLoop"]),
        target(
            "RoomServer", on: "Room",
            ["EmbeddedFiles", "RoomProtocol", "ServerCore", "RTP", "PeerSession", "PeerLoop", "PeerIO", log] + nio
                + tls,
            exclude: ["Web"]),
        target(
            "RoomRecording", on: "Room",
            ["ServerCore", "RoomProtocol", "RTP", "MediaGraph", "GStreamerKit", "MediaNodes", log]),
        target(
            "ClientCore", on: "Room",
            ["RoomProtocol", "RTP", "CongestionControl", "PeerSession", "PeerLoop", "MediaGraph"]),
        target(
            "RoomClient", on: "Room",
            ["ClientCore", "RoomProtocol", "RTP", "PeerSession", "PeerLoop", "PeerIO", "MediaGraph", "MediaNodes", log]
                + nio + tls),
        target(
            "RoomSimulation", on: "Room",
            ["ServerCore", "ClientCore", "RoomProtocol", "RTP", "PeerSession", "PeerLoop", "ICELite", "MediaGraph"]),
        // SDK
        target(
            "ConnectLiveSDK", on: "SDK",
            ["RoomClient", "RoomProtocol", "MediaGraph", "MediaNodes", "FrameSocket", "ChildProcesses"]),
        // CLI
        .executableTarget(
            name: "connectlive",
            dependencies: [
                "ConnectLiveSDK", "EmbeddedFiles", "RoomServer", "RoomRecording", "RoomClient", "RoomTLS", "ClientCore",
                "RoomProtocol",
                "MediaGraph",
                "MediaNodes", "Cameras", "GraphFile", "PluginLoader", "ChildProcesses", "PeerIO", "PeerLoop", "ICELite",
                "RTP", log,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + nio + kit,
            path: "Sources/CLI/connectlive", swiftSettings: strict,
            // Where "make install" puts the libraries.
            linkerSettings: isFetched ? [] : [.unsafeFlags(["-Xlinker", "-rpath=$ORIGIN/../lib/connectlive"])]),
        // Benchmarks
        .systemLibrary(name: "CEpoll", path: "Benchmarks/Sources/CEpoll"),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "ConnectLiveSDK", "RoomServer", "RoomClient", "ClientCore", "RoomProtocol", "RTP", "PeerSession",
                "PeerLoop", "PeerIO", "ICELite", "CEpoll", "MediaGraph", log,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + nio,
            path: "Benchmarks/Sources/benchmarks", swiftSettings: strict),
        .executableTarget(
            name: "media-benchmarks",
            dependencies: [authoring, "MediaGraph", "MediaNodes", "FrameSocket", "PluginLoader"],
            path: "Benchmarks/Sources/media-benchmarks", swiftSettings: strict),
        // The code of the README
        .executableTarget(
            name: "readme", dependencies: ["ConnectLiveSDK"], path: "examples/readme", swiftSettings: strict),
        // The README's pipeline
        .executableTarget(
            name: "camera-to-room", dependencies: ["ConnectLiveSDK"], path: "examples/camera-to-room",
            swiftSettings: strict),
        // Examples that are packages too: scripts/soak builds them as such.
        // A pipeline in Swift, changed while it runs
        .executableTarget(
            name: "compose", dependencies: ["MediaNodes"], path: "examples/compose/Sources/compose",
            swiftSettings: strict),
        // The example of a first program, which is a package too
        .executableTarget(
            name: "hello", dependencies: ["ConnectLiveSDK"], path: "examples/hello/Sources/hello",
            swiftSettings: strict),
        // A whole application, in a terminal or a window
        .executableTarget(
            name: "conference", dependencies: ["ConnectLiveSDK"] + sdl.map { .target(name: $0.name) },
            path: "examples/conference/Sources/conference", swiftSettings: strict),
        // The example of docs/screen-sharing.md
        .executableTarget(
            name: "screen-extension", dependencies: ["ConnectLiveSDK"],
            path: "examples/screen-extension/Sources/screen-extension", swiftSettings: strict),
        // The example of docs/writing-a-capturer.md
        .executableTarget(
            name: "own-capturer", dependencies: ["ConnectLiveSDK"],
            path: "examples/own-capturer/Sources/own-capturer", swiftSettings: strict),
        // A source of encoded frames with a clock of its own
        .executableTarget(
            name: "ivf-capturer", dependencies: ["ConnectLiveSDK"],
            path: "examples/ivf-capturer/Sources/ivf-capturer", swiftSettings: strict),
        // Tests
        // The helpers of all tests; those of pipelines are in TestFixtures.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: strict),
        // GStreamer's clock for tests; its headers are beside those of CGStreamer.
        .systemLibrary(name: "CGstCheck", path: "Tests/CGstCheck"),
        // How much memory malloc has given out, which the module Glibc lacks.
        .systemLibrary(name: "CMalloc", path: "Tests/CMalloc"),
        .target(
            name: "TestFixtures",
            dependencies: ["GStreamerKit", "MediaGraph", "CGLib", "CGStreamer", "CGstCheck", "TestSupport"],
            path: "Tests/fixtures",
            exclude: [
                "README.md", "display.py", "orientation_sensor.py", "pipewire_server.py", "rtsp_server.py",
                "screen_portal.py", "sound_server.py",
            ],
            swiftSettings: strict),
        // Clients of the room server, for its tests and the program's.
        .target(
            name: "RoomFixtures", dependencies: ["RoomProtocol"], path: "Tests/room-fixtures", swiftSettings: strict),
        .testTarget(
            name: "MediaGraphTests", dependencies: ["MediaGraph", "MediaNodes", "TestSupport"],
            path: "Tests/MediaGraphTests", swiftSettings: strict),
        .testTarget(
            name: "MediaTestingTests", dependencies: kit + ["TestSupport"], path: "Tests/MediaTestingTests",
            swiftSettings: strict),
        tests(of: "GraphFile", with: ["MediaGraph", "MediaNodes"]),
        tests(of: "FrameSocket"),
        tests(of: "ChildProcesses"),
        tests(of: "Cameras", with: ["MediaGraph"]),
        tests(of: "GStreamerKit", with: ["MediaGraph", "TestFixtures"]),
        tests(
            of: "MediaNodes",
            with: ["MediaGraph", "GStreamerKit", "GraphFile", "FrameSocket", "Cameras", "TestFixtures"]),
        tests(of: "PluginLoader", with: ["MediaGraph", "MediaNodes", "TestFixtures"]),
        // Run in a machine that has cameras: make guest
        .testTarget(
            name: "GuestTests",
            dependencies: [
                "Cameras", "MediaGraph", "MediaNodes", "RoomClient", "RoomProtocol", "RoomServer", "TestSupport", log,
            ] + kit,
            path: "Tests/guest/cameras", swiftSettings: strict),
        // The parsers that make fuzz tests; FuzzTests replay its findings.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "RTP", "PeerSession", "ICELite", "PeerIO", "RoomProtocol", "FrameSocket", "GraphFile", "MediaNodes",
                "Cameras",
            ],
            path: "Tests/fuzz/targets", swiftSettings: strict),
        .testTarget(
            name: "FuzzTests", dependencies: ["FuzzTargets", "TestSupport"], path: "Tests/FuzzTests",
            swiftSettings: strict),
        tests(of: "RTP"),
        tests(of: "CongestionControl", with: ["RTP"]),
        tests(of: "PeerSession", with: ["RTP", "CongestionControl"]),
        tests(of: "PeerLoop", with: ["RTP", "PeerSession"]),
        tests(of: "ICELite", with: ["RTP"]),
        tests(of: "PeerIO", with: ["CGLib", "RTP", "PeerSession", "PeerLoop", "ICELite"]),
        tests(of: "RoomProtocol", with: ["RTP"]),
        tests(of: "ServerCore", with: ["RoomProtocol", "RTP", "PeerSession", "PeerLoop"]),
        tests(of: "EmbeddedFiles"),
        tests(of: "RoomTLS"),
        tests(
            of: "RoomServer",
            with: [
                "RoomProtocol", "ServerCore", "RTP", "PeerSession", "PeerLoop", "PeerIO", "RoomFixtures",
                "TestFixtures", log,
            ]
                + nio + tls
                + [.product(name: "NIOEmbedded", package: "swift-nio")]),
        tests(
            of: "RoomRecording",
            with: [
                "ConnectLiveSDK", "RoomServer", "ServerCore", "RoomProtocol", "RTP", "MediaGraph", "MediaNodes",
                "GStreamerKit",
                "TestFixtures", log,
            ]),
        tests(
            of: "ClientCore",
            with: ["RoomProtocol", "RTP", "CongestionControl", "PeerSession", "PeerLoop", "PeerIO", "MediaGraph"]),
        // Many seeds of a room with faults, for make soak
        .executableTarget(
            name: "simulate",
            dependencies: [
                "RoomSimulation", "PeerIO", "RTP", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/simulate", swiftSettings: strict),
        tests(
            of: "RoomSimulation",
            with: [
                "ClientCore", "RoomProtocol", "ServerCore", "RTP", "PeerSession", "PeerLoop", "PeerIO", "MediaGraph",
            ],
            exclude: ["scoreboard.txt"]),
        tests(
            of: "RoomClient",
            with: ["Cameras", "ClientCore", "RoomProtocol", "RoomServer", "PluginLoader", "TestFixtures", log] + nio
                + tls),
        tests(
            of: "ConnectLiveSDK",
            with: [
                "Cameras", "ClientCore", "RoomServer", "ServerCore", "RoomRecording", "RTP", "MediaGraph", "MediaNodes",
                "TestFixtures",
            ]),
        // Applications for iOS in small, compiled as clients are, in both language modes: one folder, by a link.
        samples("Samples", mode: .v5),
        samples("SamplesInSwift6", mode: .v6),
        .testTarget(
            name: "PluginTestTests", dependencies: ["connectlive", "MediaGraph", "TestFixtures", "TestSupport"] + kit,
            path: "Tests/PluginTestTests", swiftSettings: strict),
        tests(
            of: "connectlive",
            with: [
                "Cameras", "ICELite", "PeerIO", "PeerLoop", "RTP", "MediaGraph", "MediaNodes", "TestFixtures",
                "RoomFixtures", "RoomProtocol", "RoomTLS", "CMalloc",
            ]),
    ]
)

package.targets += sdl

if isFetched {
    package.targets += [
        target("MediaAuthoring", on: "Media", ["CMediaStamp"]),
        target("MediaTesting", on: "Media", ["MediaAuthoring"]),
        .target(name: "CMediaStamp", path: "Sources/Media/CMediaStamp"),
    ]
}

if isFuzzing {
    package.targets.append(
        .executableTarget(
            name: "fuzz", dependencies: ["FuzzTargets"], path: "Tests/fuzz/driver", swiftSettings: strict))
}
