internal import CGLib
internal import CGStreamer
internal import Glibc

/// Shared memory of another process, mapped for reading while it is referenced.
// @unchecked: the pointer never changes, and nothing is written through it.
package final class MappedMemory: @unchecked Sendable {
    fileprivate let start: UnsafeMutableRawPointer
    package let count: Int

    /// Nil if the memory cannot be mapped. The descriptor is not needed afterwards.
    ///
    /// The caller has to ensure that the memory cannot shrink: reading beyond it would end the process.
    package init?(descriptor: Int32, count: Int) {
        guard count > 0, let mapped = mmap(nil, count, PROT_READ, MAP_SHARED, descriptor, 0), mapped != MAP_FAILED
        else { return nil }
        start = mapped
        self.count = count
    }

    deinit {
        munmap(start, count)
    }

    /// A copy of the current contents.
    package func copy(_ range: Range<Int>) -> [UInt8] {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        return Array(UnsafeRawBufferPointer(start: start + range.lowerBound, count: range.count))
    }
}

/// Memory lent to a buffer.
private typealias Loan = Box<(memory: MappedMemory, onReturn: @Sendable () -> Void)>

/// Notifies the owner of lent memory.
private func returnLoan(_ loan: UnsafeMutableRawPointer?) {
    Loan.value(at: loan)?.onReturn()
    releaseBox(loan)
}

extension MediaBuffer {
    /// A frame in its own memory, without a copy. `onReturn` is called once, on the thread of the last release; if no buffer
    /// can be made, before this returns. Writers have to copy it.
    ///
    /// - Parameters:
    ///   - pixelFormat: GStreamer's name.
    ///   - planes: for each plane its first byte, from the start of the frame, and the bytes from row to row.
    ///   - format: nil if it has not changed.
    package convenience init?(
        _ memory: MappedMemory, _ range: Range<Int>, _ pixelFormat: String, width: Int, height: Int,
        planes: [(offset: Int, stride: Int)], format: Caps?, onReturn: @escaping @Sendable () -> Void
    ) {
        precondition(range.lowerBound >= 0 && range.upperBound <= memory.count)
        // Retained by the buffer's memory, which returns it when it is freed.
        let loan = Loan((memory, onReturn)).retained
        guard
            let wrapped = gst_memory_new_wrapped(
                GST_MEMORY_FLAG_READONLY, memory.start + range.lowerBound, gsize(range.count), 0, gsize(range.count),
                loan, returnLoan), let buffer = gst_buffer_new()
        else {
            returnLoan(loan)
            return nil
        }
        gst_buffer_append_memory(buffer, wrapped)
        addPlanes(planes, pixelFormat, width, height, to: buffer)
        guard let aligned = aligned(buffer, planes, pixelFormat, width, height) else { return nil }
        self.init(takingOwnership: aligned, format: format)
    }
}

/// Describes the planes of a raw frame whose rows may be padded.
func addPlanes(
    _ planes: [(offset: Int, stride: Int)], _ pixelFormat: String, _ width: Int, _ height: Int,
    to buffer: UnsafeMutablePointer<GstBuffer>
) {
    let unused = Array(repeating: 0, count: 4 - planes.count)
    var offsets = (planes.map(\.offset) + unused).map { gsize($0) }
    var strides = (planes.map(\.stride) + unused).map { Int32(clamping: $0) }
    gst_buffer_add_video_meta_full(
        buffer, GST_VIDEO_FRAME_FLAG_NONE, gst_video_format_from_string(pixelFormat), UInt32(width), UInt32(height),
        UInt32(planes.count), &offsets, &strides)
}
