internal import Glibc
import Synchronization

/// Closes the descriptors that v4l2src leaves open. Its buffer pool has a copy of the device's descriptor, and lives as
/// long as one of its frames. Until then the camera would run on, be busy, and keep its number in the kernel: plugged
/// in again, it would have another name, and its driver could not be unloaded. So this stops the device and closes the
/// copy. Held frames keep their memory.
///
/// Copies of a descriptor share one open file in the kernel, and with it the signal number for the file's owner. So the
/// source's descriptor is marked by that number while it is open, and a descriptor with the mark after the close is an
/// unused copy. No signal is ever sent, because that would have to be requested too.
package enum LeftoverDescriptors {
    /// F_SETSIG and F_GETSIG of fcntl.h.
    private static let (setSignal, getSignal): (Int32, Int32) = (10, 11)
    private static let mark = SIGURG
    /// Sources with the mark that may still be open.
    private static let closing = Mutex<Set<ObjectIdentifier>>([])

    /// GStreamer 1.22.0 leaks a reference of the pool if it frees the device's buffers before all frames have returned:
    /// each opening of a camera left five descriptors. With this variable, v4l2src waits for the frames instead. Set
    /// before anything runs, because other threads read the environment.
    static func avoid() {
        if GStreamer.version == "1.22.0" { setenv("GST_V4L2_FORCE_DRAIN", "1", 0) }
    }

    /// Call before the source is closed. Does nothing if it is not open.
    package static func mark(of source: Element) {
        let descriptor = Int32(clamping: source.integer("device-fd"))
        guard descriptor >= 0 else { return }
        closing.withLock { closing in
            if fcntl(descriptor, setSignal, mark) == 0 { closing.insert(ObjectIdentifier(source)) }
        }
    }

    /// Call after the source is closed. Returns the number of closed descriptors, of it and of those closed just
    /// before.
    @discardableResult
    package static func release(of source: Element) -> Int {
        closing.withLock { closing in
            closing.remove(ObjectIdentifier(source))
            return closing.isEmpty ? releaseMarked() : 0
        }
    }

    /// /dev/null keeps their numbers, so that a late close does not hit another descriptor.
    private static func releaseMarked() -> Int {
        let left = DeviceProbe.entries(of: "/proc/self/fd").compactMap { Int32($0) }.filter { descriptor in
            fcntl(descriptor, getSignal) == mark && isCamera(descriptor)
        }
        guard !left.isEmpty else { return 0 }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard nothing >= 0 else { return 0 }
        defer { close(nothing) }
        return left.filter {
            stop($0)
            return dup2(nothing, $0) >= 0 && fcntl($0, F_SETFD, FD_CLOEXEC) == 0
        }.count
    }

    /// Tries both kinds of capturing; the wrong one is refused.
    private static func stop(_ descriptor: Int32) {
        for type in DeviceProbe.captureTypes {
            var type = type
            // VIDIOC_STREAMOFF is _IOW('V', 19, int).
            _ = ioctl(descriptor, 0x4004_5613, &type)
            _ = DeviceProbe.requestBuffers(0, type, of: descriptor)
        }
    }

    private static func isCamera(_ descriptor: Int32) -> Bool {
        var status = stat()
        // Devices of Video4Linux have the major number 81.
        guard fstat(descriptor, &status) == 0 else { return false }
        return status.st_mode & S_IFMT == S_IFCHR && (status.st_rdev >> 8) & 0xfff == 81
    }
}
