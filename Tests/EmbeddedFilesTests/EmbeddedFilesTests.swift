import EmbeddedFiles
import Foundation
import Testing
import TestSupport

@Suite struct EmbeddedFilesTests {
    @Test func `every file of the web page is embedded unchanged`() throws {
        let folder = Checkout.folder.appending(path: "Sources/Room/RoomServer/Web")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.contains("index.html"))
        for name in names {
            #expect(EmbeddedFiles.file(named: name) == Array(try Data(contentsOf: folder.appendingPathComponent(name))))
        }
    }

    @Test func `the demo's clip is embedded`() throws {
        #expect(EmbeddedFiles.demoClip == Array(try Data(contentsOf: URL(filePath: Checkout.clip))))
        #expect(EmbeddedFiles.file(named: "../etc/passwd") == nil)
    }
}
