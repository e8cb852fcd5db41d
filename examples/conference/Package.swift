// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The window needs SDL: apt-get install libsdl2-ttf-dev. Without it, the conference is in the terminal.
let hasSDL = FileManager.default.fileExists(atPath: "/usr/include/SDL2/SDL_ttf.h")

let package = Package(
    name: "conference",
    // In a copy, change path: "../.." to the folder of the checkout, or to url: …, branch: "main".
    dependencies: [.package(name: "connectlive", path: "../..")],
    targets: [
        .executableTarget(
            name: "conference",
            dependencies: [.product(name: "ConnectLiveSDK", package: "connectlive")] + (hasSDL ? ["CSDL"] : []))
    ] + (hasSDL ? [.systemLibrary(name: "CSDL")] : [])
)
