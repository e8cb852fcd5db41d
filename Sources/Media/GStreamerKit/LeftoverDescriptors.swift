internal import Glibc
import Synchronization

/// What v4l2src leaves open when it is closed: its buffer pool has a copy of the device's descriptor, and lives for as long
/// as somebody holds one of its pictures. Until then the camera would run on and be in use, and the kernel would keep its
/// number: pulled out and plugged in it would have another name, and a driver could not be unloaded. So the device is told
/// here to stop, and the copy is closed. Pictures that are held keep their memory.
///
/// Copies of a descriptor share what the kernel calls an open file, and the signal that a file's owner is to be sent is
/// a property of that. So the source's descriptor is marked while it is open, and what bears the mark when it is closed
/// is a copy that nobody uses. No signal is ever sent: the file would have to be asked for that too.
package enum LeftoverDescriptors {
    /// F_SETSIG and F_GETSIG of fcntl.h.
    private static let (setSignal, getSignal): (Int32, Int32) = (10, 11)
    private static let mark = SIGURG
    /// Sources that bear the mark and may still be open.
    private static let closing = Mutex<Set<ObjectIdentifier>>([])

    /// GStreamer 1.22.0 takes one reference of the pool too many where it gives the device's buffers back before all
    /// pictures have come home: each opening of a camera left five descriptors for good. This variable of v4l2src's has it
    /// wait for the pictures, which is the other way through the same function. Said before anything runs, because the
    /// environment is read by many.
    static func avoid() {
        if GStreamer.linkedVersion == "1.22.0" { setenv("GST_V4L2_FORCE_DRAIN", "1", 0) }
    }

    /// The source is about to be closed. Does nothing when it is not open.
    package static func mark(of source: Element) {
        let descriptor = Int32(clamping: source.integer("device-fd"))
        guard descriptor >= 0 else { return }
        closing.withLock { closing in
            if fcntl(descriptor, setSignal, mark) == 0 { closing.insert(ObjectIdentifier(source)) }
        }
    }

    /// The source is closed. How many descriptors there were of it, and of those that were closed just before.
    @discardableResult
    package static func release(of source: Element) -> Int {
        closing.withLock { closing in
            closing.remove(ObjectIdentifier(source))
            return closing.isEmpty ? releaseMarked() : 0
        }
    }

    /// Their numbers stay taken, by /dev/null: whoever closes one late closes nothing that is not his.
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

    /// Which of the two kinds of capturing it does need not be known: the other is refused.
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
