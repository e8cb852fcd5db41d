import ConnectLiveSDK
import Foundation
import Glibc
import MediaGraph
import RoomClient
import RoomServer
import Synchronization
import TestFixtures
import Testing
import TestSupport

extension SDKTests {
    /// The example's code is also a target of this package, which runs here. `make soak` builds the example as a
    /// package of its own.
    @Suite(.timeLimit(.minutes(1)))
    struct Hello {
        /// A running program and its output.
        private final class Running: Sendable {
            private let process = Mutex<Process?>(nil)
            private let said = Mutex(Data())
            private let status = Mutex<Int32?>(nil)

            init(_ path: String, _ arguments: [String], environment: [String: String] = [:]) throws {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: path)
                process.arguments = arguments
                process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
                let pipe = Pipe()
                process.standardOutput = pipe
                process.standardError = pipe
                pipe.fileHandleForReading.readabilityHandler = { [weak self] handle in
                    let data = handle.availableData
                    if data.isEmpty { handle.readabilityHandler = nil }
                    self?.said.withLock { $0.append(data) }
                }
                process.terminationHandler = { [weak self] process in
                    let code = process.terminationStatus
                    self?.status.withLock { $0 = code }
                }
                try process.run()
                self.process.withLock { $0 = process }
            }

            // It inherits a mask that blocks SIGTERM.
            deinit {
                guard let process = process.withLock({ $0 }), process.isRunning else { return }
                kill(process.processIdentifier, SIGKILL)
            }

            var output: String { String(decoding: said.withLock { $0 }, as: UTF8.self) }
            var exitCode: Int32? { status.withLock { $0 } }
        }

        @Test func `the example publishes a file and shows its subscriptions`() async throws {
            try await onStage { stage in
                let host = Client()
                _ = try await host.join("hello")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                try host.room.publish(media)
                let hello = try Running(
                    BuiltPackage.program("hello").path, [Checkout.clip, "hello", "8"],
                    environment: [
                        "CONNECTLIVE_SERVER": stage.server.url, "CONNECTLIVE_SERVICE_ID": stage.key.id,
                        "CONNECTLIVE_SERVICE_SECRET": stage.key.secret,
                    ])
                let video = try await host.listener.waitForVideo()
                let watcher = try await host.watch(video)
                try await requireEventually("frames of the file") { watcher.sights.count >= 20 }
                try await requireEventually(within: 20, "the end of the example") { hello.exitCode != nil }
                #expect(hello.exitCode == 0)
                let shown = hello.output.matches(of: /frames shown: (\d+)/).compactMap { Int($0.output.1) }
                #expect(try #require(shown.last) > 20, "\(hello.output)")
                // The end of a process may be noticed before its last line is read.
                try await requireEventually("its last line") { hello.output.contains("disconnected") }
                try await host.listener.wait(for: "left") { if case .left = $0 { true } else { nil } }
                try await host.leave()
                await media.stop()
            }
        }

        @Test func `the pipeline of the README publishes a camera that is not there yet`() async throws {
            try await onStage { stage in
                let host = Client()
                _ = try await host.join("kitchen")
                let program = try Running(
                    BuiltPackage.program("camera-to-room").path, [],
                    environment: [
                        "CONNECTLIVE_SERVER": stage.server.url, "CONNECTLIVE_SERVICE_ID": stage.key.id,
                        "CONNECTLIVE_SERVICE_SECRET": stage.key.secret,
                    ])
                let video = try await host.listener.waitForVideo()
                let watcher = try await host.watch(video)
                try await requireEventually("frames, or the slate") { watcher.sights.count >= 3 }
                #expect(program.exitCode == nil)
                try await host.leave()
            }
        }

        @Test func `the example fits on a page`() throws {
            let source = try Checkout.text("examples/hello/Sources/hello/main.swift")
            #expect(source.split(separator: "\n", omittingEmptySubsequences: false).count <= 68)
        }
    }
}
