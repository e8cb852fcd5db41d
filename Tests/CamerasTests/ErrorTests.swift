import Cameras
import Glibc
import MediaGraph
import TestSupport
import Testing

@Suite struct ErrorTests {
    @Test(arguments: [
        ("open", ENOENT, "camera.absent", "does not exist"),
        ("open", ENODEV, "camera.absent", "unplugged"),
        ("open", EACCES, "camera.denied", "Join the group video"),
        ("open", EBUSY, "camera.busy", "another program"),
        ("VIDIOC_QUERYCAP", ENOTTY, "camera.unusable", "does not understand V4L2"),
        ("VIDIOC_S_FMT", EBUSY, "camera.busy", "another program"),
        ("VIDIOC_S_FMT", EINVAL, "camera.no-mode", "Choose another size"),
        ("VIDIOC_REQBUFS", EBUSY, "camera.busy", "another program"),
        ("VIDIOC_REQBUFS", ENOMEM, "camera.failed", "no memory"),
        ("VIDIOC_STREAMON", ENOSPC, "camera.bandwidth", "no bandwidth is left"),
        ("VIDIOC_STREAMON", EIO, "camera.failed", "EIO"),
        ("VIDIOC_STREAMON", ENODEV, "camera.lost", "unplugged"),
        ("VIDIOC_DQBUF", EIO, "camera.lost", "stopped delivering frames"),
        ("VIDIOC_DQBUF", ENODEV, "camera.lost", "unplugged"),
        ("VIDIOC_S_EXT_CTRLS", ERANGE, "camera.control", "out of range"),
        ("VIDIOC_S_EXT_CTRLS", EACCES, "camera.control", "read-only"),
        ("VIDIOC_S_EXT_CTRLS", ENODEV, "camera.lost", "unplugged"),
        ("VIDIOC_ENUM_FMT", ETIMEDOUT, "camera.failed", "did not answer"),
    ])
    func `an error names its cause by the call and its number`(
        call: String, number: Int32, code: String, words: String
    ) {
        let error = MediaError(call, number, on: "/dev/video7")
        #expect(error.code == code)
        #expect(error.message.hasPrefix("The camera /dev/video7 "))
        #expect(error.message.contains(words), "\(error.message)")
        #expect(error.message.hasSuffix("."))
        #expect(error.cause?.hasPrefix("\(call): ") == true)
    }

    @Test func `files that are no cameras are refused with the reason`() throws {
        let folder = TemporaryFolder()
        func code(of path: String) -> String? {
            #expect(throws: MediaError.self) { try V4L2Camera(path) }?.code
        }
        #expect(code(of: folder.file("video0")) == "camera.absent")
        #expect(code(of: "/dev/null") == "camera.unusable")
        let refused = #expect(throws: MediaError.self) { try V4L2Camera("/dev/null") }
        #expect(refused?.cause?.hasPrefix("VIDIOC_QUERYCAP: ") == true)
        // A folder cannot be opened for writing.
        #expect(code(of: folder.path) == "camera.failed")
    }

    @Test func `a refused device leaves no descriptor`() throws {
        func count() throws -> Int {
            let folder = try #require(opendir("/proc/self/fd"))
            defer { closedir(folder) }
            var names = 0
            while readdir(folder) != nil { names += 1 }
            return names
        }
        let before = try count()
        for _ in 0..<50 { #expect(throws: MediaError.self) { try V4L2Camera("/dev/null") } }
        // Tests that run at the same time open some too.
        #expect(try count() < before + 50)
    }
}
