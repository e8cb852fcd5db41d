internal import Foundation
internal import FrameSocket
internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// A description that parses is answered or refused, and the serializer's output parses again.
func fuzzSessionDescription(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let offer = try? SessionDescription(parsing: text) else { return }
    _ = try? DownDescription.receivers(in: offer)
    for media in offer.media { _ = try? UpDescription.stream(media.mid, of: offer) }
    precondition((try? SessionDescription(parsing: offer.serialized())) != nil)
}

func fuzzCandidate(_ bytes: [UInt8]) {
    _ = try? CandidateAttribute(String(decoding: bytes, as: UTF8.self))
}

/// A message that decodes encodes to one that decodes to the same. A server accepts each text of a state that its sender
/// has shortened.
func fuzzSignalling(_ bytes: [UInt8]) {
    let json = Data(bytes)
    if let message = try? Envelope<ClientMessage>(json: json) {
        precondition((try? Envelope<ClientMessage>(json: Data(message.json().utf8))) == message)
        let state: StreamState? =
            switch message.message {
            case .setStream(let body): body.change.state
            case .setStreamState(let body): body.state
            default: nil
            }
        if case .waiting(let text) = state {
            precondition((try? StreamState.waiting(shortening: text).validate()) != nil)
        }
    }
    if let message = try? Envelope<ServerMessage>(json: json) {
        precondition((try? Envelope<ServerMessage>(json: Data(message.json().utf8))) == message)
    }
}

/// A feeder's messages, each after a byte with its length, after a valid greeting.
func fuzzFrameSocket(_ bytes: [UInt8]) {
    _ = try? FrameMessage(bytes)
    let format = FrameFormat(.i420, width: 64, height: 48)
    var intake = FrameIntake(wanted: format, now: 1_000_000_000)
    let hello = FeedHello(format: format, slots: 4, slotBytes: 4608, name: "fuzz")
    do throws(FrameSocketError) {
        _ = try intake.receive(FrameMessage.hello(hello).bytes, memory: [18_432], now: 1_000_000_000)
        var rest = bytes[...]
        var now: UInt64 = 1_000_000_000
        while let length = rest.popFirst() {
            now += 1_000_000
            let event = try intake.receive(rest.prefix(Int(length)), now: now)
            rest = rest.dropFirst(Int(length))
            guard case .frame(let frame) = event else { continue }
            precondition(frame.range.lowerBound >= 0 && !frame.range.isEmpty && frame.range.upperBound <= 18_432)
            intake.taken()
            if rest.count.isMultiple(of: 2) { _ = intake.release(pool: frame.pool, slot: frame.slot) }
        }
    } catch {
        precondition(!error.message.isEmpty)
    }
}

/// A graph file without problems is written as YAML and JSON, and both read as the same graph.
func fuzzGraphFile(_ bytes: [UInt8]) {
    let kinds = NodeRegistry.builtIn.kinds
    let reading = GraphReading(bytes, values: ["a": "1"], catalogue: kinds)
    precondition(reading.problems.allSatisfy { !$0.message.isEmpty })
    _ = reading.report(path: "x")
    guard reading.problems.isEmpty else { return }
    let yaml = GraphReading(reading.document.yaml(with: kinds).utf8, values: [:], catalogue: kinds)
    precondition(yaml.problems.isEmpty && yaml.document.graph == reading.document.graph)
}
