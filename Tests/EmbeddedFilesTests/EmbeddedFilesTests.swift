import EmbeddedFiles
import Foundation
import Testing

@Suite struct EmbeddedFilesTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `every file of the web page is embedded unchanged`() throws {
        let folder = Self.root.appendingPathComponent("Sources/Room/RoomServer/Web")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.contains("index.html"))
        for name in names {
            #expect(EmbeddedFiles.file(named: name) == Array(try Data(contentsOf: folder.appendingPathComponent(name))))
        }
    }

    @Test func `the demo's clip is embedded`() throws {
        let clip = Self.root.appendingPathComponent("media/bigbuckbunny.mp4")
        #expect(EmbeddedFiles.demoClip == Array(try Data(contentsOf: clip)))
        #expect(EmbeddedFiles.file(named: "../etc/passwd") == nil)
    }
}
