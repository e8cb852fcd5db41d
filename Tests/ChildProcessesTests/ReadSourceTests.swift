import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import ChildProcesses

@Suite struct ReadSourceTests {
    private let queue = DispatchQueue(label: "test.read")

    /// Closes its descriptor like the owners of the package do, and reports that.
    private final class Owner: Sendable {
        let number: Int32
        private let closed: AtomicCount
        init(_ number: Int32, _ closed: AtomicCount) { (self.number, self.closed) = (number, closed) }
        deinit {
            close(number)
            closed.add()
        }
    }

    private final class AtomicCount: Sendable {
        private let count = Atomic<Int>(0)
        func add() { count.add(1, ordering: .sequentiallyConsistent) }
        var value: Int { count.load(ordering: .sequentiallyConsistent) }
    }

    private func pipe() throws -> (output: Int32, input: Int32) {
        var ends: [Int32] = [0, 0]
        try #require(Glibc.pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        return (ends[0], ends[1])
    }

    @Test func `each byte is reported while the function reads it`() async throws {
        let (output, input) = try pipe()
        let (closed, bytes) = (AtomicCount(), AtomicCount())
        let source = ReadSource(output, of: Owner(output, closed), on: queue) {
            var byte: UInt8 = 0
            while read(output, &byte, 1) == 1 { bytes.add() }
        }
        for count in 1...100 {
            _ = write(input, [7], 1)
            await eventually("byte \(count)") { bytes.value == count }
        }
        source.cancel()
        await eventually("the descriptor is closed") { closed.value == 1 }
        close(input)
    }

    @Test func `what is not read is reported again`() async throws {
        let (output, input) = try pipe()
        let (closed, calls) = (AtomicCount(), AtomicCount())
        let source = ReadSource(output, of: Owner(output, closed), on: queue) { calls.add() }
        _ = write(input, [7], 1)
        await eventually("three calls for one byte") { calls.value >= 3 }
        source.cancel()
        await eventually("the descriptor is closed") { closed.value == 1 }
        let last = calls.value
        queue.sync {}
        #expect(calls.value == last)
        close(input)
    }

    @Test func `a source on hold does not call, and calls afterwards`() async throws {
        let (output, input) = try pipe()
        let (closed, calls) = (AtomicCount(), AtomicCount())
        let source = ReadSource(output, of: Owner(output, closed), on: queue) {
            calls.add()
            var byte: UInt8 = 0
            while read(output, &byte, 1) == 1 {}
        }
        // Until the longer one of two. The queue looks before that.
        let early = Mutex<Int?>(nil)
        queue.asyncAfter(deadline: .now() + 0.1) { early.withLock { $0 = calls.value } }
        source.hold(seconds: 0.3)
        source.hold(seconds: 0)
        _ = write(input, [7], 1)
        await eventually("a call") { calls.value > 0 }
        #expect(early.withLock { $0 } == 0)
        withExtendedLifetime(source) {}
        close(input)
    }

    @Test func `sources are polled as soon as the process has a descriptor for that`() async throws {
        let (output, input) = try pipe()
        let (closed, calls, tries) = (AtomicCount(), AtomicCount(), AtomicCount())
        let isFull = Mutex(true)
        let poll = DescriptorPoll {
            tries.add()
            return isFull.withLock { $0 } ? -EMFILE : DescriptorPoll.newDescriptor()
        }
        let source = ReadSource(output, of: Owner(output, closed), on: queue, with: poll) {
            calls.add()
            var byte: UInt8 = 0
            while read(output, &byte, 1) == 1 {}
        }
        await eventually("calls without events") { calls.value >= 3 }
        isFull.withLock { $0 = false }
        let refused = tries.value
        await eventually("a further try") { tries.value > refused }
        // From here on each call has its event.
        queue.sync {}
        let polled = calls.value
        for count in 1...20 {
            _ = write(input, [7], 1)
            await eventually("byte \(count)") { calls.value == polled + count }
        }
        source.cancel()
        await eventually("the descriptor is closed") { closed.value == 1 }
        close(input)
    }

    @Test func `a released source closes its descriptor`() async throws {
        let (output, input) = try pipe()
        let closed = AtomicCount()
        var source: ReadSource? = ReadSource(output, of: Owner(output, closed), on: queue) {}
        _ = source
        source = nil
        await eventually("the descriptor is closed") { closed.value == 1 }
        close(input)
    }

    /// Dispatch's own sources crash here now and then.
    @Test func `pipes hang up by the hundred`() async throws {
        let closed = AtomicCount()
        let pipes = 2000
        let queues = (0..<4).map { DispatchQueue(label: "test.read.\($0)") }
        for index in 0..<pipes {
            let (output, input) = try pipe()
            let reading = SharedSource()
            let made = ReadSource(output, of: Owner(output, closed), on: queues[index % queues.count]) {
                var byte: UInt8 = 0
                if read(output, &byte, 1) == 0 { reading.end() }
            }
            reading.begin(made)
            close(input)
        }
        await eventually("all descriptors are closed") { closed.value == pipes }
    }

    /// A source that its own function ends.
    private final class SharedSource: Sendable {
        private let state = Mutex<(source: ReadSource?, hasEnded: Bool)>((nil, false))

        func begin(_ source: ReadSource) {
            let hasEnded = state.withLock { state in
                state.source = source
                return state.hasEnded
            }
            if hasEnded { end() }
        }

        func end() {
            let source = state.withLock { state in
                defer { state = (nil, true) }
                return state.source
            }
            source?.cancel()
        }
    }
}
