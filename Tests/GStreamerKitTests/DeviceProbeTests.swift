import GStreamerKit
import Glibc
import MediaGraph
import Testing

@Suite struct DeviceProbeTests {
    private func listed(_ caps: String) -> [String] {
        DeviceProbe.formats(in: Caps(caps)).map { "\($0.pixelFormat) \($0.width)x\($0.height) \($0.framesPerSecond)" }
    }

    @Test("A mode that a device lists twice is listed once, with the rates of both")
    func repeated() {
        let modes = listed(
            "video/x-raw,format=YUY2,width=320,height=180,framerate={30/1,60/1};"
                + "video/x-raw,format=YUY2,width=320,height=180,framerate={15/1,30/1},colorimetry=bt709;"
                + "image/jpeg,width=320,height=180,framerate=30/1;video/x-h264,width=320,height=180,framerate=30/1")
        #expect(
            modes == ["YUY2 320x180 [15.0, 30.0, 60.0]", "MJPG 320x180 [30.0]", "H264 320x180 [30.0]"])
    }

    @Test("A device that this process has open does not count as used by another")
    func openHere() throws {
        #expect(!DeviceProbe.isOpenHere("/dev/zero") && !DeviceProbe.isOpenHere("/dev/no-such-device"))
        let descriptor = open("/dev/zero", O_RDONLY | O_CLOEXEC)
        #expect(DeviceProbe.isOpenHere("/dev/zero") && !DeviceProbe.isTaken("/dev/zero"))
        close(descriptor)
        #expect(!DeviceProbe.isOpenHere("/dev/zero"))
    }

    @Test("For a device of any size and rate, common modes are listed, not the largest one")
    func ranges() {
        let modes = listed(
            "video/x-raw,format=YUY2,width=[16,16384,2],height=[16,480,2],framerate=[0/1,2147483647/1]")
        #expect(modes.count == 4)
        #expect(modes.last == "YUY2 640x480 [5.0, 10.0, 15.0, 20.0, 24.0, 25.0, 30.0, 50.0, 60.0]")
        let small = listed("video/x-raw,format=YUY2,width=[16,160],height=[16,120],framerate=25/1")
        #expect(small == ["YUY2 160x120 [25.0]"])
    }

    @Test("A device that is not a camera is not released, and has no controls")
    func noCamera() throws {
        // Not the device of the test above, which runs at the same time.
        let descriptor = open("/dev/full", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let source = try Element("v4l2src")
        LeftoverDescriptors.mark(of: source)
        #expect(LeftoverDescriptors.release(of: source) == 0)
        #expect(DeviceProbe.isOpenHere("/dev/full"))
        #expect(DeviceProbe.exists("/dev/full") && !DeviceProbe.exists("/dev/video-absent"))
        #expect(DeviceProbe.controls(of: "/dev/video-absent") == nil)
        #expect(DeviceProbe.controls(of: "/dev/full")?.isEmpty == true)
    }

    @Test("A file that is not a device lists nothing", arguments: ["/dev/null", "/dev/video-absent", "/etc/passwd"])
    func none(path: String) {
        #expect(DeviceProbe.formats(of: path).isEmpty)
    }
}
