// swift-tools-version: 6.2
import PackageDescription

// What nodes are written against: the one library that the program and every plugin share, built alone.
//
// It is a package of its own because only then can nobody link it statically by mistake, beside the program's copy:
// a plugin would load and silently register nothing. See docs/architecture.md.
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
        // What a plugin's own tests are written with: it lies in the same library, so that there is one to link.
        .target(
            name: "MediaTesting", dependencies: ["MediaAuthoring"], path: "MediaTesting",
            swiftSettings: strict + resilient),
    ]
)
