internal import ArgumentParser
internal import Dispatch
internal import Foundation
internal import Glibc

/// Measures this package against itself; `Benchmarks/run` puts the figures beside those of other stacks.
///
/// Every command prints one line of JSON. None fails for being slow; one that forwards or renders wrongly exits 1.
struct Benchmarks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmarks",
        abstract: "Measures connecting, latency, forwarding and busy rooms; each command prints one line of JSON.",
        subcommands: [
            CallCommand.self, ForwardingCommand.self, BusyCommand.self, SRTPCommand.self, ServeCommand.self,
            RoomLoadCommand.self, RoomJoinsCommand.self, SendCommand.self, ParticipantCommand.self,
            RecordLayersCommand.self, FirstFrameCommand.self, ScreenExtensionCommand.self,
        ])
}

/// Not async: the main thread of such a program ends in a call that Debian's valgrind crashes on (it writes into the
/// read-only signal mask that libdispatch suspends the thread with), and callgrind counts the instructions of `serve`.
@main
enum Program {
    static func main() {
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            await Benchmarks.main()
            isDone.signal()
        }
        isDone.wait()
    }
}

/// The failure, as one sentence.
struct BenchmarkError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Ends the process when a benchmark hangs, so that nothing is left running.
func endProcess(after seconds: Int) {
    alarm(UInt32(seconds))
}

/// Waits until the condition holds, looking every few milliseconds; what is measured has time stamps of its own.
func wait(
    upTo seconds: Double, for what: String, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while try await !condition() {
        guard .now < deadline else { throw BenchmarkError("\(what) did not come about within \(Int(seconds)) s.") }
        try await Task.sleep(for: .milliseconds(5))
    }
}

func printJSON(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Not through `print`, which buffers output to a pipe.
    try FileHandle.standardOutput.write(contentsOf: try encoder.encode(value) + Data("\n".utf8))
}
