internal import Foundation
internal import FrameSocket
internal import MediaNodes
internal import RoomProtocol
internal import Synchronization

/// The folder that an application and its extension for screen sharing have in common: one of this user, in the folder of
/// sockets, with the name of the group.
final class ShareGroup: Sendable {
    /// The request of the application.
    struct Request: Encodable {
        var room: String
        /// In pixels. Larger frames are scaled down.
        var width, height: Int
        var framesPerSecond: Double
    }

    private static let nameLimit = 48
    private static let folderMode = 0o700

    /// The environment variable that names the group to the extension's program.
    static let environmentVariable = "CONNECTLIVE_APP_GROUP"

    let name: String
    let folder: String
    private let opened = Atomic(false)

    /// The path of the socket on which the application waits for frames.
    var socket: String { "\(folder)/frames.sock" }

    /// Makes the folder, unless it is there.
    ///
    /// - Parameters:
    ///   - name: of the group, such as `group.org.example.app`.
    ///   - parent: the folder of sockets. Nil for that of this user.
    init(_ name: String, in parent: String? = nil) throws(RoomError) {
        try Self.check(name)
        if parent == nil, let obstacle = RuntimeFolder.make() {
            throw Self.unusable(RuntimeFolder.path, obstacle)
        }
        self.name = name
        folder = "\(parent ?? RuntimeFolder.path)/groups/\(name)"
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: Self.folderMode])
        } catch {
            throw Self.unusable(folder, "it cannot be made")
        }
    }

    private static func check(_ name: String) throws(RoomError) {
        let isKnown = name.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isKnown, !name.isEmpty, !name.hasPrefix("."), name.utf8.count <= nameLimit else {
            throw RoomError(
                .shareGroupUnusable,
                "The app group '\(name.prefix(nameLimit))' has no valid name. Use 1 to \(nameLimit) letters, digits, dots, hyphens "
                    + "and underscores, and no dot at the start.")
        }
    }

    private static func unusable(_ folder: String, _ obstacle: String) -> RoomError {
        RoomError(
            .shareGroupUnusable,
            "The folder \(folder) for screen sharing is unusable: \(obstacle). Set XDG_RUNTIME_DIR to a folder of your own."
        )
    }

    // MARK: - Values

    /// Writes a value. A folder that is gone takes none: the frames do not depend on it.
    private func set(_ key: ScreenShareData.Keys, to value: String) {
        write(key, value)
        write(.updateFlag, "\(FrameFeed.now)")
    }

    func set(_ status: ScreenShareData.ExtensionStatus) {
        if isOpen { set(.extensionStatus, to: "\(status.rawValue)") }
    }

    /// Whether this application's share uses the group.
    var isOpen: Bool { opened.load(ordering: .relaxed) }

    /// The application requests frames, and has the socket.
    func open(_ request: Request) {
        opened.store(true, ordering: .relaxed)
        set(ScreenShareData.ExtensionStatus.notAvailable)
        if let data = try? JSONEncoder().encode(request) {
            set(.requestData, to: String(decoding: data, as: UTF8.self))
        }
        set(.startScreenShare)
    }

    /// The application requests no frames any longer.
    func close(_ status: ScreenShareData.AppStatus) {
        try? FileManager.default.removeItem(atPath: path(.requestData))
        set(status)
        set(.broadcastClosed)
    }

    private func set(_ status: ScreenShareData.AppStatus) {
        set(.appStatus, to: "\(status.rawValue)")
        set(.appTimestamp, to: "\(Date().timeIntervalSince1970)")
    }

    private func write(_ key: ScreenShareData.Keys, _ value: String) {
        // Atomically: by another file, and its new name.
        try? Data("\(value)\n".utf8).write(to: URL(filePath: path(key)), options: .atomic)
    }

    private func path(_ key: ScreenShareData.Keys) -> String { "\(folder)/\(key.rawValue)" }
}
