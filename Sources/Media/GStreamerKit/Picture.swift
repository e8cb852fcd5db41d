internal import CGLib
internal import CGStreamer
package import MediaGraph
import Synchronization

/// A raw frame that the program makes or changes. Copies share the memory, and drawing into one of them copies it first.
///
/// The memory of a frame is reused when its last reader has released it, so that a program which makes one frame after
/// another allocates nothing.
package struct Picture: Sendable {
    private enum Storage: Sendable {
        case own(PictureMemory)
        /// A frame of a pipeline.
        case buffer(VideoBuffer)
    }

    private var storage: Storage
    /// GStreamer's name of the pixel format.
    package let pixelFormat: String
    package let width: Int
    package let height: Int

    private init(_ memory: PictureMemory) {
        let store = memory.store
        self.init(.own(memory), store.pixelFormat, store.format.width, store.format.height)
    }

    private init(_ storage: Storage, _ pixelFormat: String, _ width: Int, _ height: Int) {
        (self.storage, self.pixelFormat, self.width, self.height) = (storage, pixelFormat, width, height)
    }

    /// A frame with the contents of a former one, or black. Nil for a format that GStreamer lacks.
    package init?(_ pixelFormat: String, width: Int, height: Int) {
        guard let store = PictureStore.of(pixelFormat, width, height) else { return nil }
        self.init(store.take())
    }

    /// The frame of a pipeline, without a copy; one in the memory of a program is copied. Nil if it cannot be.
    package init?(_ frame: VideoFrame) {
        if let buffer = frame.storage as? VideoBuffer {
            self.init(.buffer(buffer), "I420", frame.width, frame.height)
            return
        }
        self.init("I420", width: frame.width, height: frame.height)
        copyPlanes { plane, body in frame.withPlane(plane) { body($0, $1) } }
    }

    /// The number of colour planes.
    package var planes: Int {
        switch pixelFormat {
        case "I420": 3
        case "NV12": 2
        default: 1
        }
    }

    private func own() -> PictureMemory? { if case .own(let memory) = storage { memory } else { nil } }

    /// Calls `body` with the bytes of a plane and the distance of its rows. No bytes for a plane that the format lacks.
    package func withPlane<Result>(
        _ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result
    ) rethrows -> Result {
        switch storage {
        case .own(let memory): try memory.withPlane(plane, body)
        case .buffer(let buffer): try buffer.withPlane(plane, body)
        }
    }

    /// Calls `body` with the frame to draw into it. Copies it first if it has another reader.
    package mutating func draw(_ body: (inout MutableVideoFrame) -> Void) {
        makeOwn()
        guard case .own(let memory) = storage else { return }
        let page = OpenPage(memory)
        defer { page.close() }
        var frame = MutableVideoFrame(
            width: width, height: height, captureTime: GStreamer.now, access: page.withPlane)
        body(&frame)
    }

    private mutating func makeOwn() {
        if case .own(var memory) = storage {
            // The check needs the only reference.
            storage = .own(PictureMemory.none)
            let isAlone = isKnownUniquelyReferenced(&memory)
            storage = .own(memory)
            if isAlone { return }
        }
        guard let copy = Picture(pixelFormat, width: width, height: height) else { return }
        copy.copyPlanes { plane, body in withPlane(plane, body) }
        self = copy
    }

    /// Copies the rows of all planes.
    private func copyPlanes(from source: (VideoPlane, (RawSpan, Int) -> Void) -> Void) {
        guard let memory = own() else { return }
        for plane in VideoPlane.allCases.prefix(planes) {
            let target = memory.plane(plane)
            source(plane) { bytes, stride in
                bytes.withUnsafeBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    let length = min(target.stride, stride)
                    for row in 0..<min(target.rows, bytes.count / max(stride, 1)) {
                        (target.start + row * target.stride).copyMemory(from: start + row * stride, byteCount: length)
                    }
                }
            }
        }
    }

    /// The frame turned clockwise, in other memory.
    ///
    /// - Parameter degrees: 90, 180 or 270.
    package func turned(clockwise degrees: Int) -> Picture? {
        let isUpended = degrees == 90 || degrees == 270
        guard
            let turned = Picture(
                pixelFormat, width: isUpended ? height : width, height: isUpended ? width : height),
            let memory = turned.own()
        else { return nil }
        for plane in VideoPlane.allCases.prefix(planes) {
            let target = memory.plane(plane)
            let (columns, rows) = (plane.rows(of: width), plane.rows(of: height))
            withPlane(plane) { bytes, stride in
                bytes.withUnsafeBytes { bytes in
                    guard let start = bytes.baseAddress, bytes.count >= stride * (rows - 1) else { return }
                    let turn = PlaneTurn(
                        source: start, sourceStride: stride, columns: columns, rows: rows, target: target.start,
                        targetStride: target.stride)
                    switch (pixelFormat, plane) {
                    case ("BGRA", _): turn.run(degrees, of: UInt32.self)
                    case ("NV12", .chroma): turn.run(degrees, of: UInt16.self)
                    default: turn.run(degrees, of: UInt8.self)
                    }
                }
            }
        }
        return turned
    }
}

/// One plane that is copied in another direction.
private struct PlaneTurn {
    let source: UnsafeRawPointer
    let sourceStride: Int
    let columns: Int
    let rows: Int
    let target: UnsafeMutableRawPointer
    let targetStride: Int

    /// The side of a square that stays in the processor's cache, whose rows are apart in one of the frames.
    private static let tile = 32

    func run<Sample: BitwiseCopyable>(_ degrees: Int, of type: Sample.Type) {
        let size = MemoryLayout<Sample>.stride
        // Where the first sample goes, and how far apart those of neighbouring columns and rows go.
        let (first, nextColumn, nextRow) =
            switch degrees {
            case 90: ((rows - 1) * size, targetStride, -size)
            case 180: ((rows - 1) * targetStride + (columns - 1) * size, -size, -targetStride)
            default: ((columns - 1) * targetStride, -targetStride, size)
            }
        for top in stride(from: 0, to: rows, by: Self.tile) {
            for left in stride(from: 0, to: columns, by: Self.tile) {
                for row in top..<min(top + Self.tile, rows) {
                    let (from, to) = (source + row * sourceStride, target + (first + row * nextRow))
                    for column in left..<min(left + Self.tile, columns) {
                        let sample = from.loadUnaligned(fromByteOffset: column * size, as: type)
                        to.storeBytes(of: sample, toByteOffset: column * nextColumn, as: type)
                    }
                }
            }
        }
    }
}

/// Gives planes to write to, until it is closed: a frame that is kept beyond the call has none.
private final class OpenPage {
    private let memory: PictureMemory
    private var isOpen = true

    init(_ memory: PictureMemory) { self.memory = memory }

    func close() { isOpen = false }

    func withPlane(_ plane: VideoPlane, _ body: (inout MutableRawSpan, Int) -> Void) {
        let (start, stride, rows) = memory.plane(plane)
        var bytes = UnsafeMutableRawBufferPointer(start: start, count: isOpen ? stride * rows : 0).mutableBytes
        body(&bytes, stride)
    }
}

/// The memory of one frame. It returns to its store when it is released.
// @unchecked: only the holder of its one reference writes to it.
private final class PictureMemory: @unchecked Sendable {
    /// A placeholder that nobody reads.
    static let none = PictureMemory(PictureStore.empty, UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64))

    let store: PictureStore
    let start: UnsafeMutableRawPointer

    init(_ store: PictureStore, _ start: UnsafeMutableRawPointer) { (self.store, self.start) = (store, start) }

    deinit { store.giveBack(start) }

    /// The first byte of a plane, the bytes from row to row, and the number of rows. No rows for a plane that the format lacks.
    func plane(_ plane: VideoPlane) -> (start: UnsafeMutableRawPointer, stride: Int, rows: Int) {
        let info = store.format.info
        let (offset, stride) =
            switch plane {
            case .luma: (info.offset.0, info.stride.0)
            case .chromaBlue: (info.offset.1, info.stride.1)
            case .chromaRed: (info.offset.2, info.stride.2)
            }
        let isThere = stride > 0 && (plane == .luma || offset > 0)
        return (start + Int(offset), Int(stride), isThere ? plane.rows(of: store.format.height) : 0)
    }

    func withPlane<Result>(_ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result) rethrows -> Result {
        let (start, stride, rows) = self.plane(plane)
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeRawBufferPointer(start: start, count: stride * rows).bytes, stride)
    }
}

/// The memory of frames of one format and size that nobody reads any more.
private final class PictureStore: Sendable {
    /// A piece of memory.
    // @unchecked: nobody else has it.
    private struct Piece: @unchecked Sendable { let start: UnsafeMutableRawPointer }

    /// How many unused frames are kept, of so many bytes together.
    private static let kept = 8
    private static let keptBytes = 64 << 20
    /// The formats whose memory is kept while no frame has it: a program rarely changes between more.
    private static let recent = Mutex<[PictureStore]>([])
    private static let most = 4

    let pixelFormat: String
    let format: VideoFormat
    private let free = Mutex<[Piece]>([])

    static let empty: PictureStore = {
        guard let format = VideoFormat(width: 16, height: 16) else { preconditionFailure("GStreamer lacks I420") }
        return PictureStore("I420", format)
    }()

    private init(_ pixelFormat: String, _ format: VideoFormat) {
        (self.pixelFormat, self.format) = (pixelFormat, format)
    }

    deinit { free.withLock { for piece in $0 { piece.start.deallocate() } } }

    /// That of a format. Nil for one that GStreamer lacks.
    static func of(_ pixelFormat: String, _ width: Int, _ height: Int) -> PictureStore? {
        let (found, dropped) = recent.withLock { stores -> (PictureStore?, PictureStore?) in
            if let index = stores.lastIndex(where: {
                $0.format.width == width && $0.format.height == height && $0.pixelFormat == pixelFormat
            }) {
                // The latest last.
                if index < stores.count - 1 { stores.append(stores.remove(at: index)) }
                return (stores.last, nil)
            }
            GStreamer.load()
            guard let format = VideoFormat(pixelFormat: pixelFormat, width: width, height: height) else {
                return (nil, nil)
            }
            stores.append(PictureStore(pixelFormat, format))
            return (stores.last, stores.count > most ? stores.removeFirst() : nil)
        }
        withExtendedLifetime(dropped) {}
        return found
    }

    func take() -> PictureMemory {
        if let piece = free.withLock({ $0.popLast() }) { return PictureMemory(self, piece.start) }
        let count = Int(format.info.size)
        let start = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 64)
        // Black, so that no other memory of the process shows.
        let luma = pixelFormat == "BGRA" ? count : Int(format.info.offset.1)
        start.initializeMemory(as: UInt8.self, repeating: pixelFormat == "BGRA" ? 0 : 16, count: luma)
        (start + luma).initializeMemory(as: UInt8.self, repeating: 128, count: count - luma)
        return PictureMemory(self, start)
    }

    func giveBack(_ start: UnsafeMutableRawPointer) {
        let piece = Piece(start: start)
        let isKept = free.withLock { pieces in
            guard pieces.count < Self.kept, (pieces.count + 1) * Int(format.info.size) <= Self.keptBytes else {
                return false
            }
            pieces.append(piece)
            return true
        }
        if !isKept { start.deallocate() }
    }
}

extension MediaBuffer {
    /// The frame without a copy. It keeps the memory until its last reader releases it. Nil without memory.
    ///
    /// - Parameter format: nil if it has not changed.
    package convenience init?(_ picture: Picture, format: Caps?) {
        guard let buffer = picture.buffer else { return nil }
        self.init(takingOwnership: buffer, format: format)
    }
}

extension Picture {
    /// A buffer of this frame, which the caller owns.
    fileprivate var buffer: UnsafeMutablePointer<GstBuffer>? {
        switch storage {
        case .buffer(let frame): return gst_buffer_ref(frame.buffer)
        case .own(let memory):
            let count = memory.store.format.info.size
            guard let buffer = gst_buffer_new() else { return nil }
            let retained = Unmanaged.passRetained(memory).toOpaque()
            // Writers copy memory with this flag.
            guard
                let wrapped = gst_memory_new_wrapped(
                    GST_MEMORY_FLAG_READONLY, memory.start, count, 0, count, retained, releaseBox)
            else {
                releaseBox(retained)
                gst_buffer_unref(buffer)
                return nil
            }
            gst_buffer_append_memory(buffer, wrapped)
            return buffer
        }
    }
}

extension PassingBuffer {
    /// The frame, without a copy.
    package func picture(_ format: VideoFormat) -> Picture? {
        Picture(
            VideoFrame(
                width: format.width, height: format.height, captureTime: MediaTime(nanoseconds: 0), rtpTimestamp: nil,
                handedOver: MediaTime(nanoseconds: 0), storage: keep(as: format)))
    }

    /// Replaces the frame by another one of the same format and size, with the same times. Does nothing inside a list.
    package func replace(with picture: Picture) {
        guard let slot, let fresh = picture.buffer else { return }
        let former = current
        let object = UnsafeMutableRawPointer(fresh).assumingMemoryBound(to: GstMiniObject.self)
        guard let writable = gst_mini_object_make_writable(object) else { return }
        let buffer = UnsafeMutableRawPointer(writable).assumingMemoryBound(to: GstBuffer.self)
        let parts = GstBufferCopyFlags(
            rawValue: GST_BUFFER_COPY_FLAGS.rawValue | GST_BUFFER_COPY_TIMESTAMPS.rawValue)
        gst_buffer_copy_into(buffer, former, parts, 0, gsize.max)
        slot.pointee.data = UnsafeMutableRawPointer(buffer)
        gst_buffer_unref(former)
    }
}
