import Foundation
import RTP
import RoomFixtures
import RoomProtocol
import TestFixtures
import Testing
import TestSupport

@testable import RoomServer

/// Clients that break rules in every way that a connection permits, many at a time, seeded.
@Suite(.serialized) struct HostileClientsSoak {
    private static let rooms = 4
    /// Clients that stay connected while others connect.
    private static let present = 40

    @Test func `hostile clients leave no participant and no descriptor, and disturb no other`() async throws {
        try await withServer(configured: { $0.maximumParticipants = 200 }) { server, grant in
            let (watcher, _) = try join(server, grant.accessToken, room: "quiet")
            func check(_ id: Int) throws {
                watcher.sendMessage(.ping, id: id)
                #expect(try watcher.message { $0.id == id }.message == .pong)
            }
            try check(1)
            let before = descriptors()
            var random = Seeded(20_261_123)
            var clients: [RawClient] = []
            var done = [Int](repeating: 0, count: Hostility.allCases.count)
            for round in 0..<Soak.rounds(300, soak: 6000) {
                let index = Int(random.next() >> 8) % Hostility.allCases.count
                let room = "room-\(random.next() >> 8 & 3)"
                let client = try RawClient(port: server.port)
                try Hostility.allCases[index].act(client, server, grant.accessToken, room, &random)
                done[index] += 1
                clients.append(client)
                if clients.count > Self.present { clients.remove(at: Int(random.next() >> 8) % clients.count) }
                if round % 100 == 99 { try check(100 + round) }
            }
            #expect(done.allSatisfy { $0 > 0 })
            // Silent clients are dropped although they are still connected.
            for room in 0..<Self.rooms {
                let (last, joined) = try join(server, grant.accessToken, room: "room-\(room)")
                var present = Set(joined.participants.map(\.id))
                while !present.isEmpty {
                    let left = try last.message { if case .participantLeft = $0.message { true } else { false } }
                    if case .participantLeft(let reference) = left.message { present.remove(reference.participant) }
                }
            }
            clients = []
            #expect(await eventually { descriptors() <= before }, "\(descriptors()) descriptors instead of \(before)")
            _ = try join(server, grant.accessToken, room: "quiet")
        }
    }
}

private func descriptors() -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
}

/// One way to misbehave.
private enum Hostility: CaseIterable {
    case saysNothing, saysGarbage, cutsRequest, neverJoins, joinsWithoutToken, joinsAndLeaves, staysSilent, endsHalf,
        cutsMessage, sendsBadFrames, sendsBadMessages, floods, publishesNothing

    func act(
        _ client: RawClient, _ server: RoomServer, _ token: String, _ room: String, _ random: inout Seeded
    ) throws {
        switch self {
        case .saysNothing: return
        case .saysGarbage:
            client.send((0..<Int(random.next() >> 8 & 511)).map { _ in UInt8(truncatingIfNeeded: random.next() >> 8) })
            return
        case .cutsRequest:
            let request = Array("GET /v1/room HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n\r\n".utf8)
            client.send(Array(request.prefix(1 + Int(random.next() >> 8) % (request.count - 1))))
            return
        default: break
        }
        #expect(try client.openWebSocket(port: server.port) == 101)
        if case .neverJoins = self { return }
        guard self != .joinsWithoutToken else {
            client.sendMessage(.join(Join(token: "invented", room: room)), id: 1)
            return
        }
        client.sendMessage(.join(Join(token: token, room: room)), id: 1)
        // Half of them do not wait for the reply.
        if random.next() >> 8 & 1 == 0 { _ = try client.message { $0.id == 1 } }
        act(client, &random)
    }

    /// Behaves like a participant.
    private func act(_ client: RawClient, _ random: inout Seeded) {
        switch self {
        case .saysNothing, .saysGarbage, .cutsRequest, .neverJoins, .joinsWithoutToken, .staysSilent: break
        case .joinsAndLeaves: client.sendMessage(.leave)
        case .endsHalf: client.endSending()
        case .cutsMessage:
            let message = client.frame(Array(Envelope(id: 2, ClientMessage.publish(publication([.vp8]))).json().utf8))
            client.send(Array(message.prefix(1 + Int(random.next() >> 8) % (message.count - 1))))
        case .sendsBadFrames:
            // Any opcode and reserved bits, with and without a mask, and with an impossible length.
            let head = [UInt8(truncatingIfNeeded: random.next() >> 8), UInt8(truncatingIfNeeded: random.next() >> 8)]
            client.send(head + (0..<20).map { _ in UInt8(truncatingIfNeeded: random.next() >> 8) })
        case .sendsBadMessages:
            let texts = [
                "", "null", "[]", "{}", #"{"type":"join"}"#, #"{"type":"subscribe","stream":-1}"#,
                #"{"type":"candidate","session":"up","candidate":"candidate:1 1 udp 1 127.0.0.1 9 typ host"}"#,
                #"{"type":"candidate","session":"up","candidate":"\#(String(repeating: "x", count: 3000))"}"#,
                #"{"type":"publish","sdp":"v=0","streams":[{"mid":"0"}]}"#,
                #"{"type":"answer","session":"down","sdp":"","revision":1}"#, String(repeating: "[", count: 2000),
            ]
            for _ in 0..<20 { client.sendText(texts[Int(random.next() >> 8) % texts.count]) }
        case .floods:
            let question = client.frame(Array(#"{"type":"subscribe","id":3,"stream":1}"#.utf8))
            client.send(Array(repeatElement(question, count: 400).joined()))
        case .publishesNothing: client.sendMessage(.publish(publication([.vp8, .opus])), id: 2)
        }
    }
}
