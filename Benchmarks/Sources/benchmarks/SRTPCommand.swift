internal import ArgumentParser
internal import PeerIO
internal import PeerLoop
internal import PeerSession

/// Both SRTP libraries in one process, in turn.
struct SRTPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "srtp", abstract: "Measures sealing and opening SRTP packets with OpenSSL and with libsrtp2.")

    @Option(help: "Rounds of each library, in turn (9).") var rounds = 9

    /// Of 64 packets, in a round.
    private static let batches = 200

    private struct Report: Encodable {
        var costs: [SRTPCost] = []
    }

    func run() throws {
        endProcess(after: 600)
        let counter = AllocationCounter()
        var report = Report()
        for profile in SRTPProfile.allCases {
            for length in [100, 1200] {
                for ssrcs in [1, 45] {
                    report.costs += try compare(profile, length: length, ssrcs: ssrcs, counter)
                }
            }
        }
        try printJSON(report)
    }

    private func compare(
        _ profile: SRTPProfile, length: Int, ssrcs: Int, _ counter: AllocationCounter?
    ) throws -> [SRTPCost] {
        let openSSL = try SRTPLine<OpenSSLSRTP>(profile, length: length, ssrcs: ssrcs)
        let libSRTP = try SRTPLine<LibSRTP>(profile, length: length, ssrcs: ssrcs)
        var first = SRTPCost(library: "OpenSSL", profile: profile.rawValue, length: length, ssrcs: ssrcs)
        var second = SRTPCost(library: "libsrtp2", profile: profile.rawValue, length: length, ssrcs: ssrcs)
        // Every SSRC has its context before anything is measured.
        var unused = first
        try openSSL.measure(batches: 4, counter: nil, into: &unused)
        try libSRTP.measure(batches: 4, counter: nil, into: &unused)
        for _ in 0..<rounds {
            try openSSL.measure(batches: Self.batches, counter: counter, into: &first)
            try libSRTP.measure(batches: Self.batches, counter: counter, into: &second)
        }
        return [first, second]
    }
}
