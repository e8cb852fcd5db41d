import Dispatch
import Logging
import RoomFixtures
import RoomProtocol
import Synchronization
import Testing

@testable import RoomServer

@Suite struct LogQueueTests {
    /// A handler with a full pipe: it blocks until the gate opens.
    private struct Blocked: LogHandler {
        let gate: DispatchSemaphore
        let lines: Lines
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            gate.wait()
            gate.signal()
            lines.add("\(event.message) \(event.metadata?["count"]?.description ?? "")")
        }
    }

    @Test func `a blocked log delays no room`() async throws {
        let gate = DispatchSemaphore(value: 0)
        let lines = Lines()
        try await withServer(configured: { $0.log = Logger(label: "test") { _ in Blocked(gate: gate, lines: lines) } })
        {
            server, grant in
            // A server that waits for its log could not stop.
            defer { gate.signal() }
            let (first, _) = try join(server, grant.accessToken)
            _ = try first.publish([.opus, .vp8])
            let (second, joined) = try join(server, grant.accessToken)
            #expect(joined.participants.map(\.streams.count) == [2])
            second.sendMessage(.leave, id: 2)
            _ = try second.message { $0.id == 2 }
            #expect(lines.all.isEmpty)
        }
    }

    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    @Test func `a blocked log delays no caller and later reports how many lines it dropped`() {
        let gate = DispatchSemaphore(value: 0)
        let lines = Lines()
        let queue = LogQueue(Logger(label: "test") { _ in Blocked(gate: gate, lines: lines) })
        let isWritten = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            for _ in 0..<(LineQueue.capacity + 10) { queue.write("joined", [:]) }
            isWritten.signal()
        }
        #expect(isWritten.wait(timeout: .now() + 10) == .success)
        #expect(lines.all.isEmpty)
        gate.signal()
        queue.drain()
        queue.write("left", [:])
        queue.drain()
        #expect(lines.all.contains("log lines dropped 10"))
        #expect(lines.all.count == LineQueue.capacity + 2)
        #expect(lines.all.last == "left ")
    }
}
