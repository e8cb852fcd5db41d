import ArgumentParser
import Foundation
import PeerIO
import RTP
import RoomSimulation

/// Runs calls over links that change, as scripts/soak does.
///
/// Prints a line for each call, and exits with 1 if a promise was broken, or if the process is larger than a call needs.
struct Calls: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "calls", abstract: "Run long calls over links that change, on virtual time, one for each seed.")

    @Option(help: "The first seed.") var first: UInt64 = 1
    @Option(help: "How many seeds.") var count: UInt64 = 1
    @Option(help: "Simulated hours of each call, 0.03 to 24.") var hours = 10.0
    @Option(help: "Clients of each call, 2 to 9.") var clients = 2

    /// An hour of a call needs 45 MB, and so do ten.
    private static let mostMegabytes = 100

    func validate() throws {
        guard (0.03...24).contains(hours) else { throw ValidationError("--hours is out of range. Give 0.03 to 24.") }
        guard (2...9).contains(clients) else { throw ValidationError("--clients is out of range. Give 2 to 9.") }
        guard !first.addingReportingOverflow(count).overflow else {
            throw ValidationError("--first is out of range. Give less: seeds end at \(UInt64.max).")
        }
    }

    func run() throws {
        var hasFailed = false
        for seed in first..<(first + count) {
            var call = ChangingCall()
            call.clients = clients
            call.duration = .milliseconds(Int64(hours * 3_600_000))
            let began = EventLoop.now
            do throws(SimulationFailure) {
                let outcome = try call.run(seed: seed)
                print(
                    "Seed \(seed): \(outcome.summary), \(String(format: "%.1f", (EventLoop.now - began).seconds)) s of real time"
                )
            } catch {
                hasFailed = true
                print("Seed \(seed) at \(error.time.seconds) s: \(error.problem)")
            }
        }
        print("memory of the process: \(residentMegabytes) MB")
        if residentMegabytes > Self.mostMegabytes {
            hasFailed = true
            print("The process has more than \(Self.mostMegabytes) MB: something grows with the time.")
        }
        if hasFailed { throw ExitCode.failure }
    }

    /// Of this process, at most.
    private var residentMegabytes: Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return usage.ru_maxrss / 1024
    }
}

extension ChangingCall.Outcome {
    fileprivate var summary: String {
        "\(changes) changes and \(cuts) cuts, media after a cut within \(resumption.milliseconds) ms, after a long one within "
            + "\(longResumption.milliseconds) ms, \(resumed) resumptions, \(rejoined) joins again, \(checks) checks on good "
            + "links: latency \(latency.milliseconds) ms, skew \(skew.milliseconds) ms, error of the latency "
            + "\(latencyError.milliseconds) ms, lowest rate \(String(format: "%.2f", lowestRate)), server's packets "
            + "\(String(format: "%.1f", memory * 100)) %, \(datagrams) datagrams"
    }
}
