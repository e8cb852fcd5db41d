import RTP
import Testing
import TestSupport

@Suite struct ExtendedReportTests {
    private let replies = [
        ExtendedReport.Reply(ssrc: SSRC(7), lastReference: 0x1122_3344, delay: 65536),
        ExtendedReport.Reply(ssrc: SSRC(8), lastReference: 1, delay: .max),
    ]

    @Test func `an extended report that is written is read again`() {
        let time = NTPTime(rawValue: 0x0123_4567_89ab_cdef)
        let reports = [
            ExtendedReport(ssrc: SSRC(5), referenceTime: time), ExtendedReport(ssrc: SSRC(5), replies: replies),
            ExtendedReport(ssrc: SSRC(5), referenceTime: time, replies: replies),
        ]
        var compound = PacketBuffer()
        for report in reports where !RTCPPacket.extendedReport(report).append(to: &compound) {
            Issue.record("\(report) does not fit.")
        }
        check(RTCPPacket.parse(compound) == reports.map { .extendedReport($0) })
    }

    @Test func `the layout is that of RFC 3611, and other blocks are skipped`() {
        let bytes: [UInt8] =
            [0x80, 207, 0, 9, 0, 0, 0, 5]
            // Section 4.6, shortened.
            + [6, 0, 0, 1, 9, 9, 9, 9]
            + [4, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]
            + [5, 0, 0, 3, 0, 0, 0, 7, 0x11, 0x22, 0x33, 0x44, 0, 1, 0, 0]
        let expected = ExtendedReport(
            ssrc: SSRC(5), referenceTime: NTPTime(rawValue: 0x0102_0304_0506_0708), replies: [replies[0]])
        var whole = packet(bytes)
        whole.setUInt16(UInt16(bytes.count / 4 - 1), at: 2)
        check(RTCPPacket.parse(whole) == [.extendedReport(expected)])
    }

    @Test func `a block that overruns refuses the compound, and blocks of wrong lengths say nothing`() {
        func parsed(_ body: [UInt8]) -> [RTCPPacket]? {
            RTCPPacket.parse(packet([0x80, 207, 0, UInt8(body.count / 4)] + body))
        }
        #expect(parsed([]) == nil)
        #expect(parsed([0, 0, 0, 5, 4, 0, 0, 2, 1, 2, 3, 4]) == nil)
        #expect(parsed([0, 0, 0, 5, 5, 0, 0xff, 0xff]) == nil)
        let nothing = [RTCPPacket.extendedReport(ExtendedReport(ssrc: SSRC(5)))]
        #expect(parsed([0, 0, 0, 5, 4, 0, 0, 1, 1, 2, 3, 4]) == nothing)
        #expect(parsed([0, 0, 0, 5, 5, 0, 0, 2, 0, 0, 0, 7, 1, 2, 3, 4]) == nothing)
    }
}
