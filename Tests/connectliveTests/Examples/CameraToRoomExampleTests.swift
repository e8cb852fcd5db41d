import ConnectLiveSDK
import Foundation
import TestFixtures
import Testing
import TestSupport

/// The example of the README, run unchanged. A recorded camera takes the place of the first one.
@Suite struct CameraToRoomExampleTests {
    private static let secret = "a secret of at least 32 characters"

    /// A camera whose frames are white. A slate is dark.
    private func whiteCamera(in folder: TemporaryFolder) throws -> String {
        let frame = Data(repeating: 255, count: 64 * 48).base64EncodedString()
        let text = """
            {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
             "formats": [{"format": "GREY", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
             "frames": [{"format": "GREY", "size": "64x48", "data": "\(frame)"}]}
            """
        try text.write(toFile: folder.file("camera.json"), atomically: true, encoding: .utf8)
        return "fixture:" + folder.file("camera.json")
    }

    @Test func `the example shows the first camera in the room until Ctrl-C, and then leaves and ends as a success`()
        async throws
    {
        let server = try TestServer(["--service-id", "home", "--service-secret", Self.secret])
        let access = RoomAccess(
            server: "ws://127.0.0.1:\(server.port)", serviceId: "home", serviceSecret: Self.secret)
        let program = try RunningProgram(
            BuiltPackage.program("camera-to-room").path, [], folder: server.folder,
            environment: [
                "CONNECTLIVE_CAMERA": try whiteCamera(in: server.folder),
                "CONNECTLIVE_SERVER": "ws://127.0.0.1:\(server.port)", "CONNECTLIVE_SERVICE_ID": "home",
                "CONNECTLIVE_SERVICE_SECRET": Self.secret,
            ])
        let brightness = Collected<UInt8>()
        let viewer = try await MediaPipeline {
            Subscribe(room: "kitchen", codec: .vp8, access: access)
                >>> Frames { frame in
                    brightness.append(
                        frame.withPlane(.luma) { luma, stride in
                            luma.unsafeLoad(
                                fromByteOffset: frame.height / 2 * stride + frame.width / 2, as: UInt8.self)
                        })
                }
        }
        try await viewer.start()
        await eventually("the camera") { brightness.all.contains { $0 > 200 } }
        await viewer.stop()
        program.interrupt()
        let result = try program.finish(seconds: 20)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.error.isEmpty)
    }
}
