import Foundation
import MediaGraph
import PeerLoop
import RTP
import RoomProtocol
import Testing

@testable import ClientCore
@testable import PeerSession

/// Sessions as objects of W3C webrtc-stats.
@Suite struct StatisticsReportTests {
    /// A report as text: a line for each object, its values sorted by name.
    private func lines(_ report: [StatisticsEntry]) -> [String] {
        report.map { entry in
            let values = entry.values.sorted { $0.key < $1.key }.map { name, value in
                switch value {
                case .integer(let number): "\(name)=\(number)"
                case .number(let number): "\(name)=\(number)"
                case .text(let text): "\(name)='\(text)'"
                case .flag(let flag): "\(name)=\(flag)"
                }
            }
            return "\(entry.id) \(entry.type) @\(entry.time): " + values.joined(separator: " ")
        }
    }

    private func line(_ parts: String...) -> String { parts.joined() }

    private var transport: SessionStatistics.Transport {
        var transport = SessionStatistics.Transport()
        (transport.packetsSent, transport.packetsReceived) = (1000, 900)
        (transport.bytesSent, transport.bytesReceived) = (1_000_000, 90_000)
        transport.routes = 2
        (transport.iceState, transport.dtlsState, transport.dtlsRole) = ("connected", "connected", "client")
        transport.usernameFragment = "ufrag"
        transport.profile = .aeadAES128GCM
        transport.outgoingBitsPerSecond = 2_000_000
        transport.pair = SessionStatistics.Pair(
            localAddress: "[fd00::2]:5000", remoteAddress: "10.0.0.1:40000",
            path: RoomStatistics.Path(local: .relay, remote: .host, transport: "TLS", relay: "turn.example:443"))
        return transport
    }

    private func sent(_ codec: Codec, ssrc: UInt32) -> SessionStatistics.Sent {
        var counters = SenderStatistics()
        (counters.packets, counters.bytes, counters.headerBytes) = (100, 12_000, 2000)
        return SessionStatistics.Sent(
            stream: 7, participant: "ann", mid: "1", ssrc: SSRC(ssrc), source: SSRC(20),
            codec: SessionStatistics.CodecParameters(codec), counters: counters, framesSent: 50)
    }

    @Test func `the transport, its pair and its candidates, behind a relay`() {
        let session = SessionStatistics(direction: .up, index: 1, time: 1000, transport: transport)
        let local = "up1-local-relay-udp-[fd00::2]:5000"
        let remote = "up1-remote-host-udp-10.0.0.1:40000"
        let pair = "up1-pair-\(local)-\(remote)"
        #expect(
            lines(session.report) == [
                line(
                    "up1-transport transport @1000.0: bytesReceived=90000 bytesSent=1000000 dtlsRole='client' ",
                    "dtlsState='connected' iceLocalUsernameFragment='ufrag' iceState='connected' ",
                    "packetsReceived=900 packetsSent=1000 selectedCandidatePairChanges=2 ",
                    "selectedCandidatePairId='\(pair)' srtpCipher='SRTP_AEAD_AES_128_GCM'"),
                line(
                    "\(pair) candidate-pair @1000.0: availableOutgoingBitrate=2000000.0 localCandidateId='\(local)' ",
                    "nominated=true remoteCandidateId='\(remote)' state='succeeded' transportId='up1-transport'"),
                line(
                    "\(local) local-candidate @1000.0: address='fd00::2' candidateType='relay' port=5000 protocol='udp' ",
                    "relayProtocol='tls' transportId='up1-transport' url='turns:turn.example:443?transport=tcp'"),
                line(
                    "\(remote) remote-candidate @1000.0: address='10.0.0.1' candidateType='host' port=40000 ",
                    "protocol='udp' transportId='up1-transport'"),
            ])
    }

    @Test func `a sent video, with repeats and padding, and what the server reports of it`() {
        var stream = sent(.vp8, ssrc: 20)
        stream.rid = "f"
        stream.repairSSRC = SSRC(21)
        (stream.counters.retransmittedPackets, stream.counters.retransmittedBytes) = (4, 480)
        stream.counters.retransmittedHeaderBytes = 80
        (stream.counters.paddingPackets, stream.counters.paddingBytes) = (2, 240)
        stream.counters.paddingPayloadBytes = 102
        (stream.counters.nacks, stream.counters.keyframeRequests, stream.counters.fullIntraRequests) = (3, 5, 1)
        (stream.counters.remoteLost, stream.counters.remoteFractionLost) = (6, 0.25)
        stream.counters.remoteJitter = .milliseconds(3)
        (stream.counters.roundTrip, stream.counters.totalRoundTrip) = (.milliseconds(50), .milliseconds(120))
        stream.counters.roundTrips = 2
        stream.reportTime = 999.5
        (stream.width, stream.height) = (640, 480)
        stream.encoder = SessionStatistics.Encoder(
            framesCaptured: 60, framesEncoded: 55, keyframesEncoded: 2, capturedPerSecond: 30, encodedPerSecond: 29.5,
            targetBitsPerSecond: 500_000, limitation: .network)
        var session = SessionStatistics(direction: .up, index: 0, time: 1000, transport: .init())
        session.sent = [stream]
        #expect(
            lines(session.report).dropFirst() == [
                line(
                    "up0-codec-96 codec @1000.0: clockRate=90000 mimeType='video/VP8' payloadType=96 ",
                    "transportId='up0-transport'"),
                line(
                    "up0-source-20 media-source @1000.0: frames=60 framesPerSecond=30.0 kind='video' ",
                    "participantId='ann' streamId=7"),
                line(
                    "up0-outbound-20 outbound-rtp @1000.0: active=true bytesSent=10502 codecId='up0-codec-96' firCount=1 ",
                    "frameHeight=480 frameWidth=640 framesEncoded=55 framesPerSecond=29.5 framesSent=50 ",
                    "headerBytesSent=2218 keyFramesEncoded=2 kind='video' mediaSourceId='up0-source-20' mid='1' ",
                    "nackCount=3 packetsSent=106 participantId='ann' pliCount=4 ",
                    "qualityLimitationReason='bandwidth' remoteId='up0-remote-inbound-20' ",
                    "retransmittedBytesSent=400 retransmittedPacketsSent=4 rid='f' rtxSsrc=21 ssrc=20 streamId=7 ",
                    "targetBitrate=500000.0 transportId='up0-transport'"),
                line(
                    "up0-remote-inbound-20 remote-inbound-rtp @999.5: codecId='up0-codec-96' fractionLost=0.25 ",
                    "jitter=0.003 kind='video' localId='up0-outbound-20' packetsLost=6 participantId='ann' ",
                    "roundTripTime=0.05 roundTripTimeMeasurements=2 ssrc=20 streamId=7 totalRoundTripTime=0.12 ",
                    "transportId='up0-transport'"),
            ])
    }

    @Test func `sent audio has no repeats, and one that passes through no source`() {
        var stream = sent(.opus, ssrc: 30)
        var session = SessionStatistics(direction: .up, index: 0, time: 1000, transport: .init())
        session.sent = [stream]
        #expect(!session.report.contains { $0.type == "media-source" })
        stream.sound = SessionStatistics.Sound(seconds: 2, level: 0.5, energy: 0.25)
        session.sent = [stream]
        let lines = lines(session.report)
        #expect(
            lines[2...] == [
                line(
                    "up0-source-20 media-source @1000.0: audioLevel=0.5 kind='audio' participantId='ann' streamId=7 ",
                    "totalAudioEnergy=0.25 totalSamplesDuration=2.0"),
                line(
                    "up0-outbound-30 outbound-rtp @1000.0: active=true bytesSent=10000 ",
                    "codecId='up0-codec-111-minptime=10;stereo=1;sprop-stereo=1;useinbandfec=1' ",
                    "headerBytesSent=2000 kind='audio' mediaSourceId='up0-source-20' mid='1' nackCount=0 ",
                    "packetsSent=100 participantId='ann' ssrc=30 streamId=7 transportId='up0-transport'"),
            ])
        #expect(lines[1].contains("channels=2 clockRate=48000 mimeType='audio/opus'"))
    }

    @Test func `a small source, whose lowest layers nothing encodes, has the one object that the others name`() {
        let layers = (0..<3).map { rank in
            var layer = sent(.vp8, ssrc: 20 + UInt32(rank))
            (layer.rank, layer.layers) = (rank, 3)
            if rank > 0 { layer.encoder = SessionStatistics.Encoder(framesCaptured: 60 - rank) }
            return layer
        }
        var session = SessionStatistics(direction: .up, index: 0, time: 1000, transport: .init())
        session.sent = layers
        let sources = session.report.filter { $0.type == "media-source" }
        #expect(sources.map(\.id) == ["up0-source-20"] && sources.first?.values["frames"] == .integer(59))
        let named = session.report.filter { $0.type == "outbound-rtp" }.map { $0.values["mediaSourceId"] }
        #expect(named == [nil, .text("up0-source-20"), .text("up0-source-20")])
    }

    @Test(arguments: ["new", "checking", "connected", "completed", "disconnected", "failed", "closed"])
    func `a pair has succeeded while media goes over it`(state: String) {
        var transport = transport
        transport.iceState = state
        let session = SessionStatistics(direction: .up, index: 1, time: 1000, transport: transport)
        let pair = session.report.first { $0.type == "candidate-pair" }
        let isConnected = state == "connected" || state == "completed"
        #expect(pair?.values["state"] == (isConnected ? .text("succeeded") : nil))
        #expect(pair?.values["nominated"] == (isConnected ? .flag(true) : nil))
    }

    private func received(_ media: StreamMedia, _ codec: Codec) -> SessionStatistics.Received {
        var counters = ReceiverStatistics()
        (counters.arrivals.packets, counters.arrivals.payloadBytes, counters.arrivals.headerBytes) = (90, 9000, 1800)
        (counters.lost, counters.jitter, counters.nacks, counters.keyframeRequests) = (10, .milliseconds(2), 4, 1)
        var stream = SessionStatistics.Received(
            mid: "3", media: media, ssrc: SSRC(40), codec: SessionStatistics.CodecParameters(codec),
            counters: counters, lastPacketTime: 999.75)
        stream.totals.packetsLate = 2
        return stream
    }

    @Test func `a receiver of video, and what the server has sent to it`() {
        var stream = received(.video, .vp9)
        stream.repairSSRC = SSRC(41)
        (stream.counters.arrivals.retransmittedPackets, stream.counters.arrivals.retransmittedBytes) = (5, 550)
        let report = SenderInformation(
            ssrc: SSRC(40), ntp: NTPTime(unixNanoseconds: 1_000_000_000_000), rtp: RTPTimestamp(0), packetCount: 99,
            octetCount: 9900)
        stream.counters.sent = ReportedPackets(report, now: .zero)
        (stream.reportTime, stream.remoteTime) = (999.5, 1000)
        (stream.stream, stream.participant) = (8, "bob")
        (stream.totals.framesReceived, stream.totals.framesDecoded, stream.totals.framesRendered) = (30, 29, 28)
        (stream.width, stream.height, stream.framesPerSecond) = (320, 240, 15)
        var session = SessionStatistics(direction: .down, index: 0, time: 1000, transport: .init())
        session.received = [stream]
        #expect(
            lines(session.report).dropFirst(2) == [
                line(
                    "down0-inbound-3 inbound-rtp @1000.0: bytesReceived=9000 codecId='down0-codec-100-profile-id=0' ",
                    "frameHeight=240 frameWidth=320 framesDecoded=29 framesPerSecond=15.0 framesReceived=30 ",
                    "framesRendered=28 headerBytesReceived=1800 jitter=0.002 kind='video' ",
                    "lastPacketReceivedTimestamp=999750.0 mid='3' nackCount=4 packetsDiscarded=2 packetsLost=10 ",
                    "packetsReceived=90 participantId='bob' pliCount=1 remoteId='down0-remote-outbound-3' ",
                    "retransmittedBytesReceived=550 retransmittedPacketsReceived=5 rtxSsrc=41 ssrc=40 streamId=8 ",
                    "transportId='down0-transport'"),
                line(
                    "down0-remote-outbound-3 remote-outbound-rtp @999.5: bytesSent=9900 ",
                    "codecId='down0-codec-100-profile-id=0' kind='video' localId='down0-inbound-3' packetsSent=99 ",
                    "participantId='bob' remoteTimestamp=1000000.0 reportsSent=1 ssrc=40 streamId=8 ",
                    "transportId='down0-transport'"),
            ])
    }

    @Test func `a receiver of audio that carries no stream keeps its counters`() {
        var stream = received(.audio, .opus)
        (stream.totals.audioSeconds, stream.totals.audioEnergy) = (1.5, 0.125)
        var session = SessionStatistics(direction: .down, index: 0, time: 1000, transport: .init())
        session.received = [stream]
        #expect(
            lines(session.report).last
                == line(
                    "down0-inbound-3 inbound-rtp @1000.0: bytesReceived=9000 ",
                    "codecId='down0-codec-111-minptime=10;stereo=1;sprop-stereo=1;useinbandfec=1' ",
                    "headerBytesReceived=1800 jitter=0.002 kind='audio' lastPacketReceivedTimestamp=999750.0 mid='3' ",
                    "nackCount=4 packetsDiscarded=2 packetsLost=10 packetsReceived=90 ssrc=40 totalAudioEnergy=0.125 ",
                    "totalSamplesDuration=1.5 totalSamplesReceived=72000 transportId='down0-transport'"))
    }

    @Test(arguments: [
        (QualityLimitation.none, "none"), (.network, "bandwidth"), (.processor, "cpu"),
        (.subscribers, "other"),
    ])
    func `reasons of a limitation are those of the standard`(limitation: QualityLimitation, reason: String) {
        var stream = sent(.vp8, ssrc: 20)
        stream.encoder = SessionStatistics.Encoder(limitation: limitation)
        var session = SessionStatistics(direction: .up, index: 0, time: 1000, transport: .init())
        session.sent = [stream]
        let outbound = session.report.first { $0.type == "outbound-rtp" }
        #expect(outbound?.values["qualityLimitationReason"] == .text(reason))
    }

    @Test func `counters go on when another encoder takes over, and begin with the stream`() {
        var before = MediaStatistics.VideoEncoder()
        (before.captured, before.encoded, before.keyframes) = (100, 90, 3)
        var totals = EncoderTotals(after: before)
        var counters = before
        (counters.captured, counters.encoded, counters.keyframes) = (160, 140, 4)
        totals.update(counters)
        var next = MediaStatistics.VideoEncoder()
        (next.captured, next.encoded, next.keyframes) = (10, 9, 1)
        totals.update(next)
        (next.captured, next.encoded) = (30, 29)
        totals.update(next)
        let statistics = totals.statistics(next, .none)
        #expect(statistics.framesCaptured == 90 && statistics.framesEncoded == 79)
        #expect(statistics.keyframesEncoded == 2 && statistics.encodedPerSecond == nil)
    }

    @Test func `an encoder that returns adds what it has counted meanwhile`() {
        var (first, second) = (MediaStatistics.VideoEncoder(), MediaStatistics.VideoEncoder())
        (first.encoder, first.captured) = (1, 100)
        (second.encoder, second.captured) = (2, 10)
        var totals = EncoderTotals(after: nil)
        for counters in [first, second] { totals.update(counters) }
        first.captured = 120
        totals.update(first)
        #expect(totals.captured.total == 130)
        // A new one with a higher count than the one before counts whole.
        (second.encoder, second.captured) = (3, 125)
        totals.update(second)
        #expect(totals.captured.total == 255)
    }

    @Test func `a rate over a second follows the last three samples of it`() {
        var rate = RateWindow(over: .seconds(1))
        func sample(_ count: Int, at milliseconds: Int64) {
            rate.sample(count, now: MonotonicTime(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds))
        }
        sample(0, at: 0)
        #expect(rate.measured == nil)
        for step in 1...4 as ClosedRange<Int64> { sample(Int(step) * 5, at: step * 500) }
        #expect(rate.measured == 10)
        sample(60, at: 2500)
        #expect(rate.measured == 45)
    }

    @Test(arguments: [(-120.0, 0.0), (0, 1), (-20, 0.1), (3, 1)])
    func `levels become amplitudes`(level: Double, expected: Double) {
        #expect(abs(amplitude(ofDecibels: level) - expected) < 1e-12)
    }
}
