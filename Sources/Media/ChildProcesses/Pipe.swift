internal import CLinux
internal import Glibc

/// The output of a program, read without blocking.
package final class OutputPipe: Sendable {
    package enum Received: Sendable {
        case bytes([UInt8])
        case nothing
        /// All writers have closed it.
        case end
    }

    private let reading: OwnedDescriptor

    private init(_ reading: OwnedDescriptor) {
        self.reading = reading
    }

    /// A pipe, and the program's end of it, which must be closed here after the program has started. `capacity` is in
    /// bytes; 0 means the default.
    package static func make(capacity: Int = 0) throws(ChildProcess.Failure) -> (OutputPipe, OwnedDescriptor) {
        var ends: [Int32] = [-1, -1]
        let answer = clinux_pipe(&ends, capacity)
        guard answer == 0 else { throw ChildProcess.Failure(-answer) }
        return (OutputPipe(OwnedDescriptor(number: ends[0])), OwnedDescriptor(number: ends[1]))
    }

    package var number: Int32 { reading.number }

    /// Reads up to `most` available bytes.
    package func receive(_ most: Int) -> Received {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, filled in
            let count = read(reading.number, buffer.baseAddress, buffer.count)
            if count < 0 { failure = errno }
            filled = max(0, count)
        }
        if failure == EAGAIN || failure == EINTR { return .nothing }
        return bytes.isEmpty ? .end : .bytes(bytes)
    }
}

/// A descriptor that is closed when the value is released.
package final class OwnedDescriptor: Sendable {
    package let number: Int32

    init(number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }
}
