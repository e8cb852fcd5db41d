internal import ClientCore
internal import RTP

/// A client's loudspeaker: counts the packets of one audio stream that the server assigned.
final class AudioListener: IncomingSink {
    let stream: Int
    private unowned let client: SimulatedClient
    private unowned let simulation: World
    /// The audio streams that the client heard before, of which nothing may arrive here.
    private let earlier: Set<Int>
    private var numbers: Set<UInt32> = []
    private(set) var isEnded = false

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
        guard source == simulation.audioSource(of: stream) else {
            if earlier.contains(where: { $0 != stream && simulation.audioSource(of: $0) == source }) {
                simulation.fail("\(client.name) got sound of an earlier stream in stream \(stream).")
            }
            return
        }
        guard numbers.insert(number).inserted else {
            return simulation.fail("\(client.name) got packet \(number) of audio stream \(stream) twice.")
        }
    }

    func end() { isEnded = true }

    var report: SimulationReport.Listener {
        SimulationReport.Listener(client: client.name, stream: stream, packets: numbers.count)
    }
}
