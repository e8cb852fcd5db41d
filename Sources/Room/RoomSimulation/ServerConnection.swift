internal import Foundation
internal import PeerLoop
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// The server's end of a signalling connection.
final class ServerConnection: ClientConnection {
    let place = ClientPlace.elsewhere
    private(set) var isEnding = false
    private var hasJoined = false
    private let process: ServerProcess
    /// The rooms of its loop, once it has asked to join one.
    private var rooms: Rooms?
    private unowned let client: SimulatedClient
    private unowned let simulation: World
    private var liveness: ClientLiveness
    private lazy var watch = simulation.loop.makeTimer { [unowned self] in check() }
    /// Messages of an earlier connection of the client carry another number and are dropped.
    let number: Int

    init(_ client: SimulatedClient, process: ServerProcess, simulation: World) {
        self.client = client
        self.process = process
        self.simulation = simulation
        number = client.nextConnection()
        liveness = ClientLiveness(now: simulation.loop.now)
        watch.arm(at: simulation.loop.now + SignsOfLife.pingInterval)
    }

    // MARK: - Towards the client

    func send(_ message: ServerMessage, answering id: Int?) {
        deliver(.text(Envelope(id: id, message).json()))
    }

    func belongs(to client: SimulatedClient) -> Bool { self.client === client }

    /// See `Rooms.lastLeftOut`.
    func lastLeftOut(of stream: Int) -> MonotonicTime { rooms?.lastLeftOut(of: stream, for: self) ?? .zero }

    func didJoin() { hasJoined = true }

    func didNotJoin() {}

    func didGuess(at participant: String) { process.wrongSecrets += 1 }

    func close(_ closing: Closing) {
        send(.closed(closing), answering: nil)
        end()
    }

    func end() {
        guard !isEnding else { return }
        deliver(.closed)
        isEnding = true
        watch.disarm()
    }

    private func deliver(_ input: SignallingInput) {
        guard !isEnding else { return }
        client.deliverDown(input, of: number)
    }

    private func check() {
        switch liveness.verdict(now: simulation.loop.now, hasJoined: hasJoined) {
        case .alive: break
        case .gone: return lose()
        case .askForMedia:
            liveness.heardMedia(at: rooms?.lastMedia(from: self) ?? .zero)
            if simulation.loop.now >= liveness.silenceEnds { return lose() }
        }
        deliver(.ping)
        let now = simulation.loop.now
        // The end of the silence comes first if it is before the next ping.
        let end = liveness.silenceEnds > now ? liveness.silenceEnds : .never
        watch.arm(at: min(now + SignsOfLife.pingInterval, end))
    }

    /// The client is silent.
    private func lose() {
        end()
        rooms?.disconnected(self, lost: liveness.lastHeard)
    }

    // MARK: - From the client

    func receive(_ input: SignallingInput) {
        guard !isEnding || input == .closed || input == .broken else { return }
        liveness.heard(now: simulation.loop.now)
        switch input {
        case .ping: break
        case .closed, .broken:
            if !isEnding {
                isEnding = true
                watch.disarm()
            }
            rooms?.disconnected(self, lost: input == .broken ? simulation.loop.now : nil)
        case .text(let text): handle(text)
        }
    }

    private func handle(_ text: String) {
        do throws(MessageRefused) {
            let envelope = try Envelope<ClientMessage>(json: Data(text.utf8))
            if case .ping = envelope.message, hasJoined { return send(.pong, answering: envelope.id) }
            let admission = admission(envelope.message)
            if let admission { rooms = rooms ?? process.rooms(with: admission.room, for: client) }
            if case .resume(let resume) = envelope.message { rooms = rooms ?? process.rooms(of: resume.participant) }
            process.handle(client) {
                var request = ClientRequest(envelope)
                request.mayResume = true
                (rooms ?? process.anyRooms).handle(request, from: self, admission)
            }
            // It may join another room.
            if case .resume = envelope.message, !hasJoined { rooms = nil }
        } catch {
            (rooms ?? process.anyRooms).handle(ClientRequest(error), from: self)
        }
    }

    private func admission(_ message: ClientMessage) -> Admission? {
        guard case .join(let join) = message, let room = try? RoomName(join.room) else { return nil }
        return Admission(room: room) {}
    }
}

/// One piece of input of a signalling connection.
enum SignallingInput: Equatable {
    case text(String)
    /// A WebSocket ping or pong.
    case ping
    case closed
    /// The connection ended without a farewell.
    case broken
}
