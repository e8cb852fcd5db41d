import Cameras
import GStreamerKit
import Testing

@testable import MediaGraph
@testable import MediaNodes

/// A board: libcamera, and the raw sensor on V4L2. `elements` are installed; `lacksCamera` means that no ribbon cable is
/// plugged in.
private struct Board: CameraEnvironment {
    var elements: Set<String> = ["libcamerasrc", "v4l2h264enc", "x264enc", "vp8enc"]
    var lacksCamera = false

    func hasElement(_ factory: String) -> Bool {
        !(factory.hasSuffix("enc") || factory == "libcamerasrc") || elements.contains(factory)
    }
    func canOpen(_ factory: String) -> Bool { factory != "libcamerasrc" || !lacksCamera }
    func package(ofElement factory: String) -> String { "gstreamer1.0-libcamera" }
    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        throw MediaError(code: MediaError.Code.cameraNoMode, message: "The camera model:imx219 has no known format.")
    }
    func deviceControls(_ path: String) -> [DeviceControl]? { nil }
    func camera(
        _ device: String, suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void
    ) throws(MediaError) -> CameraChoice { try camera(device) }
    func sequenceParameters(of path: String, in mode: CaptureMode) -> SequenceParameters? { nil }
    func file(_ path: String) throws(MediaError) -> MediaFileInfo { throw MediaFile.notFound(path) }
    func windowSink() -> String? { nil }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
}

extension MediaNodesTests {
    /// A Raspberry Pi's camera and its encoder, in a made-up registry. No such board runs these tests.
    @Suite struct LibCameraTests {
        private func plan(
            _ settings: [String: SettingValue] = [:], to end: String = "encoder", on board: Board = Board()
        ) throws -> GraphPlan {
            let camera = Node(
                "camera", settings: ["width": 1280, "height": 720, "fps": 30].merging(settings) { $1 })
            let graph = MediaGraph {
                Chain {
                    camera
                    if end == "encoder" {
                        Node.videoEncoder("encoder", codec: .h264)
                        Node.rtpOutput("packets")
                    } else {
                        Node.frames("view")
                    }
                }
            }
            return try Planner(NodeRegistry.builtIn, board).plan(graph)
        }

        private func refusal(_ settings: [String: SettingValue], on board: Board = Board()) -> String? {
            do {
                _ = try plan(settings, on: board)
                return nil
            } catch {
                return (error as? MediaError)?.code
            }
        }

        @Test func `frames go from libcamera to the board's encoder without a conversion`() throws {
            let plan = try plan(["device": "libcamera:/base/soc/i2c0mux/imx219@10"])
            let camera = try #require(plan.node("camera"))
            #expect(camera.formats["video"]?.encoding == "NV12")
            #expect(
                camera.device?.elements.map(\.factory) == ["libcamerasrc", "capsfilter", "videorate", "capsfilter"])
            #expect(
                camera.device?.elements[0].properties["camera-name"] == .text("/base/soc/i2c0mux/imx219@10"))
            #expect(camera.resource == "libcamera:/base/soc/i2c0mux/imx219@10")
            #expect(plan.node("encoder")?.elements.contains { $0.factory == "v4l2h264enc" } == true)
            #expect(!plan.nodes.contains { $0.node.kind == "convert" })
        }

        @Test func `consumers of I420 get it, mirrored if requested`() throws {
            let plan = try plan(["device": "libcamera", "mirror": true], to: "view")
            let device = try #require(plan.node("camera")?.device)
            #expect(device.elements.map(\.factory).contains("videoconvert"))
            #expect(device.elements.map(\.factory).contains("videoflip"))
            #expect(device.elements[0].properties.isEmpty)
        }

        @Test func `auto takes libcamera if V4L2 has only raw frames of the sensor`() throws {
            #expect(try plan().node("camera")?.resource == "libcamera")
            #expect(refusal([:], on: Board(elements: ["x264enc"])) == "camera.no-mode")
            #expect(refusal([:], on: Board(lacksCamera: true)) == "camera.no-mode")
            #expect(refusal(["device": "model:imx219"]) == "camera.no-mode")
        }

        @Test(
            arguments: [
                (["format": "h264"], "camera.no-mode"), (["brightness": 1], "camera.control"),
                (["controls": "gain=1"], "camera.control"), (["failover": "front"], "graph.invalid"),
                (["strict": true], "graph.invalid"),
            ] as [([String: SettingValue], String)])
        func `settings of V4L2 cameras are refused`(settings: [String: SettingValue], code: String) {
            #expect(refusal(settings.merging(["device": "libcamera"]) { $1 }) == code)
        }

        @Test func `the modes are those that its device provider states`() {
            let caps = Caps(
                "video/x-raw,format=NV12,width=640,height=480; video/x-raw,format=NV12,width=1920,height=1080; "
                    + "video/x-raw,format=YUY2,width=[32,3280],height=[32,2464]; image/jpeg,width=640,height=480")
            let camera = LibraryCamera("imx219", caps)
            #expect(camera.name == "libcamera:imx219")
            #expect(camera.modes == ["NV12 640x480, 1920x1080", "YUY2 32x32 to 3280x2464", "jpeg 640x480"])
            #expect(LibraryCamera("imx219", nil).modes.isEmpty)
            #expect(LibraryCamera("imx219", Caps("video/x-raw")).modes.isEmpty)
        }

        @Test func `without its element, the message names the package`() {
            #expect(refusal(["device": "libcamera"], on: Board(elements: ["x264enc"])) == "element.missing")
            let message = #expect(throws: MediaError.self) {
                try plan(["device": "libcamera"], on: Board(elements: ["x264enc"]))
            }?.message
            #expect(
                message?.contains("plugin for libcamera is not installed. On Debian, install") == true,
                "\(message ?? "")")
            #expect(LibCamera("libcameras") == nil && LibCamera("serial:1") == nil)
        }
    }
}
