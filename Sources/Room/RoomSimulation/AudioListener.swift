internal import ClientCore
internal import PeerLoop
internal import RTP

/// A client's loudspeaker: counts the packets of one audio stream that the server assigned.
final class AudioListener: IncomingSink {
    let stream: Int
    private unowned let client: SimulatedClient
    private unowned let simulation: World
    /// The audio streams that the client heard before, of which nothing may arrive here.
    private let earlier: Set<Int>
    /// The newest packets.
    private var numbers: Set<UInt32> = []
    private var highest: UInt32 = 0
    private(set) var count = 0
    private(set) var lastHeard: MonotonicTime?
    /// From the capture of the newest packet until it arrived. Nil before.
    private(set) var latency: TimeInterval?
    private(set) var isEnded = false
    private static let remembered: UInt32 = 4096

    init(_ stream: Int, of client: SimulatedClient, earlier: Set<Int>, in simulation: World) {
        self.stream = stream
        self.client = client
        self.earlier = earlier
        self.simulation = simulation
    }

    func begin(_ stream: IncomingStream) {}

    func receive(_ packet: Span<UInt8>) {
        guard !isEnded, packet.count > RTPHeader.minimumLength,
            let (source, number) = AudioSource.contents(
                of: packet.extracting(Contents.payloadStart(of: packet)..<packet.count))
        else { return }
        guard source == simulation.audioSource(of: stream)?.id else {
            if earlier.contains(where: { $0 != stream && simulation.audioSource(of: $0)?.id == source }) {
                simulation.fail("\(client.name) got sound of an earlier stream in stream \(stream).")
            }
            return
        }
        guard numbers.insert(number).inserted else {
            return simulation.fail("\(client.name) got packet \(number) of audio stream \(stream) twice.")
        }
        count += 1
        simulation.audioLog?.arrived(number, of: source, at: client.name, at: simulation.loop.now)
        lastHeard = simulation.loop.now
        latency = simulation.audioSource(of: stream)?.captureTime(of: number).map { simulation.loop.now - $0 }
        highest = max(highest, number)
        if numbers.count > 2 * Int(Self.remembered) {
            numbers = numbers.filter { $0 + Self.remembered > highest }
        }
    }

    func end() { isEnded = true }

    var report: SimulationReport.Listener {
        SimulationReport.Listener(client: client.name, stream: stream, packets: count)
    }
}
