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

// A plugin that was built against an older MediaGraph runs with this one, or is refused with a missing symbol's name.
let resilient: [SwiftSetting] = [
    .unsafeFlags([
        "-enable-library-evolution", "-no-verify-emitted-module-interface",
        // The module has the name of its main type, which a textual interface could not tell apart otherwise.
        "-Xfrontend", "-alias-module-names-in-module-interface",
    ])
]

let package = Package(
    name: "Media",
    products: [
        .library(name: "MediaGraph", type: .dynamic, targets: ["MediaGraph", "MediaTesting"])
    ],
    targets: [
        .target(name: "CMediaStamp", path: "CMediaStamp"),
        .target(
            name: "MediaGraph", dependencies: ["CMediaStamp"], path: "MediaGraph", swiftSettings: strict + resilient),
        // What a plugin's own tests are written with: it lies in the same library, so that there is one to link.
        .target(
            name: "MediaTesting", dependencies: ["MediaGraph"], path: "MediaTesting", swiftSettings: strict + resilient),
    ]
)
