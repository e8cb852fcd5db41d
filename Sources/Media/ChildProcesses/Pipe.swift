internal import CLinux
internal import Glibc

/// What a program writes, to be read without waiting.
package final class OutputPipe: Sendable {
    package enum Received: Sendable {
        case bytes([UInt8])
        case nothing
        /// Nobody can write any more.
        case end
    }

    private let reading: Int32

    private init(_ reading: Int32) {
        self.reading = reading
    }

    deinit {
        close(reading)
    }

    /// A pipe, and the end for the program: to be closed here once the program has started. `capacity` is how much it
    /// should hold; 0 for the usual.
    package static func make(capacity: Int = 0) throws(ChildProcess.Failure) -> (OutputPipe, PipeEnd) {
        var ends: [Int32] = [-1, -1]
        let answer = clinux_pipe(&ends, capacity)
        guard answer == 0 else { throw ChildProcess.Failure(reason: String(cString: strerror(-answer)).lowercased()) }
        return (OutputPipe(ends[0]), PipeEnd(number: ends[1]))
    }

    package var number: Int32 { reading }

    /// Up to `most` bytes that are there.
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

/// The end of a pipe that a program gets; closed here with the value.
package final class PipeEnd: Sendable {
    package let number: Int32

    init(number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }
}
