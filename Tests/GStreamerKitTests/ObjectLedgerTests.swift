import GStreamerKit
import MediaGraph
import TestFixtures
import Testing

@Suite struct ObjectLedgerTests {
    @Test func `a retained object is counted by its type until it is freed`() async {
        await #expect(processExitsWith: .success) {
            ObjectLedger.trace()
            let ledger = try #require(ObjectLedger())
            var kept: [Element] = []
            for _ in 0..<3 { kept.append(try Element("identity")) }
            #expect(ledger.living["GstIdentity"] == 3)
            kept.removeFirst()
            #expect(ledger.living["GstIdentity"] == 2)
            kept.removeAll()
            #expect(ledger.living["GstIdentity"] == 0)
        }
    }

    @Test func `an untraced process has no ledger`() async {
        await #expect(processExitsWith: .success) {
            #expect(ObjectLedger() == nil)
        }
    }
}
