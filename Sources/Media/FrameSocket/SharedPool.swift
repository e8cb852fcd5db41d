internal import CLinux
internal import Glibc

/// Memory that a feeder shares, mapped for writing.
// @unchecked: the pointer never changes, and each slot has one writer at a time.
final class SharedPool: @unchecked Sendable {
    let descriptor: Descriptor
    private let start: UnsafeMutableRawPointer
    private let count: Int
    private let slotBytes: Int

    init(slots: Int, slotBytes: Int) throws(FrameSocketError) {
        count = slots * slotBytes
        self.slotBytes = slotBytes
        let made = clinux_memory("frames", count)
        guard made >= 0 else { throw Self.failure(words(-made)) }
        descriptor = Descriptor(taking: made)
        guard let mapped = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0), mapped != MAP_FAILED else {
            throw Self.failure(words(errno))
        }
        start = mapped
    }

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
