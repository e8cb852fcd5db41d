/// A frame in a driver's buffer. The buffer returns to the driver when the last reference is released, on that thread.
///
/// A device has few buffers: a frame that is kept longer than some frame times costs later frames.
package final class CapturedFrame: Sendable {
    /// The memory of a frame, which outlives the device's stream.
    package protocol Memory: Sendable {
        /// Gives the frame's bytes in a plane to `body`.
        func withBytes<Result>(_ plane: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result
        /// Returns the buffer to the device. Any thread.
        func giveBack()
    }

    private let memory: any Memory
    /// Bytes of data in each plane. A driver may report fewer than the layout's, for a cut frame.
    package let lengths: [Int]
    /// Time of the capture since the start of `CLOCK_MONOTONIC`. Nil if the driver gives no time, or one of another
    /// clock. Drivers are known to repeat times, to run backwards, and to give the end of a frame before it is there.
    package let timestamp: Duration?
    /// Counts frames since the start of the stream, with those that the driver could not deliver. Some drivers count
    /// nothing and give 0.
    package let sequence: UInt32
    /// Whether the driver marks the data as corrupt (`V4L2_BUF_FLAG_ERROR`).
    package let isCorrupt: Bool
    /// For encoded frames: whether the driver marks a keyframe. Many drivers never do.
    package let isKeyframe: Bool
    /// The buffers that the device had left for further frames when it gave this one.
    package let spare: Int

    package init(
        _ memory: any Memory, lengths: [Int], timestamp: Duration?, sequence: UInt32, isCorrupt: Bool = false,
        isKeyframe: Bool = false, spare: Int = 0
    ) {
        self.memory = memory
        self.lengths = lengths
        self.timestamp = timestamp
        self.sequence = sequence
        self.isCorrupt = isCorrupt
        self.isKeyframe = isKeyframe
        self.spare = spare
    }

    deinit { memory.giveBack() }

    /// The number of planes.
    package var pieces: Int { lengths.count }

    /// Gives the bytes of a plane to `body`, without a copy. The driver does not write to them meanwhile.
    package func withBytes<Result>(plane: Int = 0, _ body: (RawSpan) throws -> Result) rethrows -> Result {
        try memory.withBytes(plane, body)
    }

    /// A copy of the bytes of a plane.
    package func copy(plane: Int = 0) -> [UInt8] {
        withBytes(plane: plane) { span in span.withUnsafeBytes { Array($0) } }
    }
}
