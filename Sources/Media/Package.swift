// swift-tools-version: 6.2
import PackageDescription

// The interface of custom nodes: the one library that the program and every plugin share, built alone.
//
// As a package of its own, it cannot be linked statically by mistake, beside the program's copy: the plugin would load
// and silently register nothing. See docs/architecture.md.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
]

// A plugin that was built against an older MediaAuthoring runs with this one, or is refused with a missing symbol's name.
let resilient: [SwiftSetting] = [
    // The textual interface is not used, and its verification does not find CMediaStamp.
    .unsafeFlags(["-enable-library-evolution", "-no-verify-emitted-module-interface"])
]

let package = Package(
    name: "Media",
    products: [
        .library(name: "MediaAuthoring", type: .dynamic, targets: ["MediaAuthoring", "MediaTesting"])
    ],
    targets: [
        .target(name: "CMediaStamp", path: "CMediaStamp"),
        .target(
            name: "MediaAuthoring", dependencies: ["CMediaStamp"], path: "MediaAuthoring",
            swiftSettings: strict + resilient),
        // For a plugin's own tests. It is part of the same library, so that there is only one to link.
        .target(
            name: "MediaTesting", dependencies: ["MediaAuthoring"], path: "MediaTesting",
            swiftSettings: strict + resilient),
    ]
)
