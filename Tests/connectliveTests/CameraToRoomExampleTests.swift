import Foundation
import TestFixtures
import Testing
import TestSupport

/// The example of the README, run unchanged. Without a camera, it publishes a slate.
@Suite struct CameraToRoomExampleTests {
    @Test func `the example publishes until Ctrl-C, and then leaves the room and ends as a success`() throws {
        let server = try TestServer(["--verbose"])
        let program = try RunningProgram(BuiltPackage.program("camera-to-room").path, [], folder: server.folder)
        _ = try server.tool.waitForText("publish")
        program.interrupt()
        let result = try program.finish(seconds: 20)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.error.isEmpty)
    }
}
