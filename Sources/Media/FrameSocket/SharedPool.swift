internal import CLinux
internal import Glibc

/// Memory that a feeder shares, mapped for writing.
// @unchecked: the pointer never changes, and each slot has one writer at a time.
final class SharedPool: @unchecked Sendable {
    let descriptor: Descriptor
    private let start: UnsafeMutableRawPointer
    private let count: Int
    let slots: UInt32
    private let slotBytes: Int

    /// A pool for frames of a format, with 1 to 64 slots.
    init(_ format: FrameFormat, slots: Int) throws(FrameSocketError) {
        try format.checkSize("A feed cannot send")
        self.slots = max(1, min(UInt32(clamping: slots), FrameIntake.mostSlots))
        slotBytes = format.bytesPerFrame
        count = Int(self.slots) * slotBytes
        let made = clinux_memory("frames", count)
        guard made >= 0 else { throw Self.failure(words(-made)) }
        descriptor = Descriptor(taking: made)
        guard let mapped = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0), mapped != MAP_FAILED else {
            throw Self.failure(words(errno))
        }
        start = mapped
    }

    var allSlots: [UInt32] { Array(0..<slots) }

    private static func failure(_ why: String) -> FrameSocketError {
        FrameSocketError(code: "feed.memory", "Shared memory for frames cannot be created: \(why).")
    }

    deinit {
        munmap(start, count)
    }

    func withSlot<Result, Failure: Error>(
        _ slot: Int, _ body: (inout MutableRawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        precondition((slot + 1) * slotBytes <= count)
        let buffer = UnsafeMutableRawBufferPointer(start: start + slot * slotBytes, count: slotBytes)
        var span = buffer.mutableBytes
        return try body(&span)
    }
}
