import Dispatch
import Foundation
import PeerIO
import PeerSession
import RTP
import RoomProtocol
import Testing

@testable import RoomServer

/// A participant whose media the test makes and reads itself: one packet a frame, with the frame's number in it.
///
/// Signalling happens on the test's thread, media on the loop; `onLoop` goes from one to the other.
final class SteadyClient: @unchecked Sendable {
    struct Frame: Equatable {
        var sequenceNumber: SequenceNumber
        var timestamp: RTPTimestamp
        /// Counts how often the publisher began anew.
        var source: Int
        var number: Int
        var isKeyframe: Bool
    }

    let line: RawClient
    private let loop = EventLoop(name: "media client")
    private let certificate: Certificate
    private let didHappen = DispatchSemaphore(value: 0)
    // On the loop only.
    private var up: Peer?
    private var down: Peer?
    private var sender: SenderID?
    private var number = SequenceNumber(0)
    private var frame = 0
    private var source = 0
    private var isKeyframeWanted = true
    private(set) var keyframeRequests = 0
    private var frames: [Frame] = []
    private var timer: LoopTimer?
    private var uncut: LoopTimer?

    private static let midExtension: UInt8 = 4

    init(_ server: RoomServer, _ token: String) throws {
        (line, _) = try join(server, token)
        certificate = try Certificate()
    }

    /// Closes what was opened. No call may follow.
    func close() {
        onLoop { [self] in
            timer?.disarm()
            timer = nil
            up?.close()
            down?.close()
        }
        onLoop { [self] in
            up = nil
            down = nil
        }
        loop.shutdown()
    }

    private func onLoop<Value>(_ body: @escaping () -> Value) -> Value {
        nonisolated(unsafe) var result: Value?
        nonisolated(unsafe) let body = body
        let isDone = DispatchSemaphore(value: 0)
        loop.execute {
            result = body()
            isDone.signal()
        }
        isDone.wait()
        guard let result else { preconditionFailure("The loop has ended.") }
        return result
    }

    private func onLoop<Value>(trying body: @escaping () throws -> Value) throws -> Value {
        try onLoop { Result { try body() } }.get()
    }

    /// Waits until what is received, or happens, makes the condition true; false after 20 s.
    func wait(until condition: @escaping (SteadyClient) -> Bool) -> Bool {
        let deadline = DispatchTime.now() + .seconds(20)
        while !onLoop({ condition(self) }) {
            guard didHappen.wait(timeout: deadline) == .success else { return false }
        }
        return true
    }

    /// Whether `count` frames of this source, or a later one, have come.
    func receives(_ count: Int, of source: Int) -> Bool {
        wait { $0.frames.count { $0.source >= source } >= count }
    }

    var received: [Frame] { onLoop { self.frames } }
    var requests: Int { onLoop { self.keyframeRequests } }

    private func makePeer(_ role: ICERole) throws -> Peer {
        let peer = try Peer(
            loop: loop, configuration: PeerConfiguration(iceRole: role, certificate: certificate, cname: "test"))
        peer.onEvent = { [unowned self] event in
            if case .keyframeRequested = event {
                isKeyframeWanted = true
                keyframeRequests += 1
            }
            didHappen.signal()
        }
        try peer.start()
        return peer
    }

    // MARK: - Publishing

    /// Publishes a VP8 video, whose mid is in its packets; its id.
    func publish(first number: UInt16) throws -> Int {
        let publish = try onLoop(trying: { [self] in
            let peer = try makePeer(.controlling)
            up = peer
            var offer = UpDescription.offer(
                sessionID: 1, version: 1,
                senders: [Sender(mid: "0", codec: .vp8, ssrc: SSRC(0x1111), retransmissionSSRC: nil)],
                transport: peer.local, cname: "test")
            offer.media[0].extensions = [HeaderExtension(id: Self.midExtension, uri: HeaderExtension.midURI)]
            return Publish(sdp: offer.serialized(), streams: [.init(mid: "0")])
        })
        line.sendMessage(.publish(publish), id: 2)
        guard case .published(let answer) = try line.message(where: { $0.id == 2 }).message else { return 0 }
        let remote = try #require(try SessionDescription(parsing: answer.sdp).transport)
        try onLoop(trying: { [self] in
            try up?.setRemote(remote, dtlsRole: remote.setup == .passive ? .client : .server)
            begin(SSRC(0x1111), SequenceNumber(number))
        })
        try #require(wait { $0.up?.isSecured == true })
        onLoop { [self] in
            timer = loop.makeTimer { [unowned self] in sendFrame() }
            sendFrame()
        }
        return answer.streams.first?.stream ?? 0
    }

    private func begin(_ ssrc: SSRC, _ first: SequenceNumber) {
        number = first
        sender = up?.addSender(
            SenderConfiguration(
                kind: .video, ssrc: ssrc, clockRate: 90000, mid: "0", midExtensionID: Self.midExtension))
    }

    /// Goes on under another SSRC, with other numbers, and with no keyframe unless one is asked for.
    func beginAnew(_ ssrc: UInt32, step: Int) {
        onLoop { [self] in
            source += 1
            isKeyframeWanted = false
            begin(SSRC(ssrc), number.advanced(by: step))
        }
    }

    /// Moves the numbers so far on, behind a cut, that the receiver's SRTP mistakes the rollover counter.
    func loseCount() {
        onLoop { [self] in
            var impairment = Impairment(seed: 0)
            impairment.isCut = true
            up?.impairment = impairment
            for _ in 0..<2 {
                number = number.advanced(by: 20_000)
                sendPacket()
            }
            // The packets leave, into the cut, at the end of this turn.
            uncut = loop.schedule(after: .milliseconds(20)) { [unowned self] in up?.impairment = nil }
        }
    }

    private func sendFrame() {
        sendPacket()
        timer?.arm(at: loop.now + .milliseconds(2))
    }

    private func sendPacket() {
        guard let up, let sender else { return }
        number = number.advanced(by: 1)
        frame += 1
        var packet = PacketBuffer()
        let identity = [UInt8(source), UInt8(frame >> 8 & 0xff), UInt8(frame & 0xff)]
        let isFilled = packet.assignRTP(
            payloadType: 96, sequenceNumber: number, timestamp: RTPTimestamp(UInt32(source * 1_000_000 + frame * 180)),
            ssrc: SSRC(0), marker: true, payload: [0x10, isKeyframeWanted ? 0 : 1] + identity)
        guard isFilled, let header = RTPHeader(parsing: packet) else { return }
        isKeyframeWanted = false
        up.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
    }

    // MARK: - Watching

    /// Opens the down session and subscribes.
    func watch(_ stream: Int) throws {
        let message = try line.message { if case .offer = $0.message { true } else { false } }
        guard case .offer(let description) = message.message else { return }
        let offer = try SessionDescription(parsing: description.sdp)
        let remote = try #require(offer.transport)
        let answer = try onLoop(trying: { [self] in
            let peer = try makePeer(.controlled)
            down = peer
            for receiver in try DownDescription.receivers(in: offer) where receiver.media == .video {
                _ = peer.addReceiver(
                    ReceiverConfiguration(
                        kind: .video, ssrc: receiver.ssrc, retransmissionSSRC: receiver.retransmissionSSRC,
                        mid: receiver.mid, clockRate: 90000, payloadTypes: [96],
                        retransmissionPayloadTypes: [96: 97], nack: true))
            }
            peer.onMedia = { [unowned self] _, header, _, packet in take(header, packet) }
            try peer.setRemote(remote, dtlsRole: .client)
            var local = peer.local
            local.setup = .active
            return DownDescription.answer(to: offer, sessionID: 1, transport: local).serialized()
        })
        line.sendMessage(.answer(Description(session: .down, sdp: answer, revision: description.revision)))
        try #require(wait { $0.down?.isSecured == true })
        line.sendMessage(.subscribe(StreamReference(stream: stream)), id: 3)
        _ = try line.message { $0.id == 3 }
    }

    private func take(_ header: RTPHeader, _ packet: borrowing PacketBuffer) {
        guard header.payloadLength == 5 else { return }
        let at = header.payloadOffset
        frames.append(
            Frame(
                sequenceNumber: header.sequenceNumber, timestamp: header.timestamp, source: Int(packet.bytes[at + 2]),
                number: Int(packet.bytes[at + 3]) << 8 | Int(packet.bytes[at + 4]),
                isKeyframe: packet.bytes[at + 1] & 1 == 0))
        didHappen.signal()
    }
}
