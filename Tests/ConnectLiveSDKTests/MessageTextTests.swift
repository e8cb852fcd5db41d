import Foundation
import RoomProtocol
import Testing

@testable import ConnectLiveSDK
@testable import RoomClient

/// The words of errors that an application sees.
@Suite struct MessageTextTests {
    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources").standardizedFileURL

    /// The code that an application links, and that of the server whose errors reach it. GraphFile reads the files of the
    /// commands. The listener's errors and those about page tokens are for the administrator and for browsers.
    private static let folders = [
        "SDK", "Transport", "Media/MediaGraph", "Media/MediaNodes", "Media/Cameras", "Media/GStreamerKit",
        "Media/FrameSocket", "Media/ChildProcesses", "Room/RoomProtocol", "Room/RoomTLS", "Room/ClientCore",
        "Room/RoomClient", "Room/ServerCore", "Room/RoomServer/Access", "Room/RoomServer/Rooms", "Room/RoomServer/TLS",
        "Room/RoomServer/HTTP/Routes.swift", "Room/RoomServer/HTTP/WebSocketHandler.swift",
        "Room/RoomServer/HTTP/RefusingHandler.swift", "Room/RoomServer/HTTP/SignallingConnection.swift",
    ]

    private static func files(in folder: String) throws -> [URL] {
        let url = sources.appendingPathComponent(folder)
        guard !folder.hasSuffix(".swift") else { return [url] }
        let all = FileManager.default.enumerator(at: url, includingPropertiesForKeys: nil)
        return (all?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }
    }

    @Test(arguments: folders)
    func `no text of the SDK, or of the server for it, speaks of a command-line flag`(folder: String) throws {
        let files = try Self.files(in: folder)
        #expect(!files.isEmpty)
        for file in files {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated() where !line.trimmingPrefix(while: \.isWhitespace).hasPrefix("//") {
                let flags = line.matches(of: /"(?:\\.|[^"\\])*"/).filter { $0.output.contains(/(?:^|[^\w-])--[a-z]/) }
                // The names of flags are made from those of the parameters; see ServerNamer.
                #expect(
                    flags.isEmpty || line.contains("case .command: return"), "\(file.lastPathComponent):\(number + 1)")
            }
        }
    }

    @Test func `errors of a sign-in without a server or a key name parameters and variables`() {
        let path = "/nonexistent/server.json"
        for locator in [
            ServerLocator(environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "https://a", environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "https://a", serviceId: "b", environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "ftp://a", environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "https://a?b", environment: [:], filePath: path, namer: .application),
        ] {
            do throws(RoomError) {
                _ = try locator.locate()
                Issue.record("A server was found.")
            } catch {
                #expect(!error.message.contains("--") && !error.message.contains("connectlive serve"), "\(error)")
            }
        }
    }

    @Test func `errors of a server that is not reached, or not accepted, name no command`() async throws {
        for address in ["ws://127.0.0.1:1", "https://127.0.0.1:1/p"] {
            let address = try ServerAddress(address)
            for error: any Error in [ConnectionClosedEarly(), AnswerTooLong()] {
                let text = unreachable(address, error).message
                #expect(!text.contains("--") && !text.contains("connectlive "), "\(text)")
            }
            for trust in [ServerTrust.system, .authorities("/ca.pem"), .serverFile("/server.json")] {
                for isForAnotherName in [true, false] {
                    let text = CertificateExamination.error(address, trust, isForAnotherName, nil, now: 0).message
                    #expect(!text.contains("--") && !text.contains("connectlive "), "\(text)")
                }
            }
        }
    }
}
