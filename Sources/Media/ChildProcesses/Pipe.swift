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

    private let reading: Int32

    private init(_ reading: Int32) {
        self.reading = reading
    }

    deinit {
        close(reading)
    }

    /// A pipe, and the program's end of it, which must be closed here after the program has started. `capacity` is in
    /// bytes; 0 means the default.
    package static func make(capacity: Int = 0) throws(ChildProcess.Failure) -> (OutputPipe, PipeEnd) {
        var ends: [Int32] = [-1, -1]
        let answer = clinux_pipe(&ends, capacity)
        guard answer == 0 else { throw ChildProcess.Failure(reason: String(cString: strerror(-answer)).lowercased()) }
        return (OutputPipe(ends[0]), PipeEnd(number: ends[1]))
    }

    package var number: Int32 { reading }

    /// Reads up to `most` available bytes.
    package func receive(_ most: Int) -> Received {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, filled in
            let count = read(reading, buffer.baseAddress, buffer.count)
            if count < 0 { failure = errno }
            filled = max(0, count)
        }
        if failure == EAGAIN || failure == EINTR { return .nothing }
        return bytes.isEmpty ? .end : .bytes(bytes)
    }
}

/// A program's end of a pipe. Closed here when the value is released.
package final class PipeEnd: Sendable {
    package let number: Int32

    init(number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }
}
