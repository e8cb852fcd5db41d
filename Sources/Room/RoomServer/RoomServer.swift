internal import Foundation
package import Logging
internal import NIOCore
internal import NIOPosix
package import PeerIO
package import PeerLoop
package import RTP
package import RoomProtocol
package import RoomTLS
package import ServerCore

/// A room server: sign-in, rooms, forwarding and the web page, in this process.
///
/// The first participant creates a room. Media is forwarded by rewriting RTP, never decoded.
package final class RoomServer: Sendable {
    /// How media finds its way to clients.
    package enum ICE: String, Sendable, CaseIterable {
        /// All media uses one UDP port, and clients find the way to it (RFC 8445, section 2.5).
        case lite
        /// Each session has UDP ports of its own and checks the client's addresses too.
        case full
    }

    package struct Configuration: Sendable {
        /// The address to listen on, for signalling and media. 127.0.0.1 keeps both on this machine; 0.0.0.0 means all
        /// of its IPv4 addresses, :: all of its addresses. Media at 0.0.0.0 has IPv6 too.
        package var host = "127.0.0.1"
        /// 0 means any free port.
        package var port = 7880
        /// The certificate for the page and signalling. Nil means no TLS.
        package var tls: TLSFiles?
        /// Called when another certificate replaces that of `tls`, on any thread.
        package var onCertificate: @Sendable (ServerCertificate) -> Void = { _ in }
        /// How many ports to try, beginning at `port`.
        package var portsTried = 1
        /// The UDP port of all media, or more of them: one for each of the `threads`. 0 means any free port. Nil means the
        /// number of `port` if it is free, else any.
        package var mediaPorts: ClosedRange<UInt16>?
        /// The TCP port of media, for clients whose network blocks UDP. 0 means any free port. Nil means none.
        package var tcpPort: UInt16?
        package var ice = ICE.lite
        /// How many threads forward media, 1...`threadLimit`.
        package var threads = RoomServer.defaultThreads
        /// How many participants of one room a thread gets before the room spreads to another thread.
        package var roomLoopSize = RoomServer.defaultRoomLoopSize
        /// Addresses at which clients reach the media port, besides those of this machine: of a 1:1 NAT, for example.
        package var publicAddresses: [String] = []
        /// STUN and TURN servers that clients are told.
        package var relays: RelayService?
        /// Records streams whose publishers ask for it. Nil means that the server records nothing.
        package var recorder: (any StreamRecorder)?
        package var service: ServiceKey
        /// Whether browsers on other machines get a token from the page without a secret.
        package var isOpen = false
        package var log: Logger
        /// Loss at the media sockets, for tests.
        package var impairment: (@Sendable () -> Impairment?)?
        /// Each participant has sockets and caches of its own; more than these are refused with `server.full`.
        package var maximumParticipants = 1000
        /// For how many seconds a participant stays whose connection broke, so that its client can resume. 0 lets it leave at
        /// once.
        package var graceSeconds = Int(SessionSettings.defaultGrace.seconds)
        /// How many videos a participant can receive, 0...`receiverLimit`, as far as it asks for them.
        package var maximumReceivers = ReceiverPool().maximum
        /// Messages that a client may send at once.
        package var messageBurst = WebSocketHandler.messageBurst
        /// Measures the shares of the rooms' turns; see `EventLoop`.
        package var turnClock: @Sendable () -> MonotonicTime = { EventLoop.now }

        package init(service: ServiceKey, log: Logger) {
            self.service = service
            self.log = log
        }
    }

    /// The most receivers of `Configuration.maximumReceivers`: each is an m-line of an offer.
    package static let receiverLimit = DownDescription.mostVideos
    /// The most threads of `Configuration.threads`.
    package static let threadLimit = PortGroup.limit
    /// One for each core of this machine but one, which signalling and other programs use. At least 1.
    package static let defaultThreads = min(max(1, ProcessInfo.processInfo.activeProcessorCount - 1), threadLimit)

    /// With four videos each, a room of this size sends about 20,000 packets a second, which is a good part of a core. In
    /// smaller rooms, a pipe costs more than it gains.
    package static let defaultRoomLoopSize = 100

    package let configuration: Configuration
    /// The listening port.
    package let port: Int
    /// The UDP ports of all media, and the addresses that clients are told. Nil with `ICE.full`.
    package let media: MediaAddresses?
    let directory: RoomDirectory
    /// One for each thread.
    private let hosts: [RoomHost]
    private let listener: HTTPListener
    let tls: TLSIdentity?
    private let log: LogQueue

    private init(
        configuration: Configuration, hosts: [RoomHost], directory: RoomDirectory, listener: HTTPListener,
        tls: TLSIdentity?, media: MediaAddresses?, log: LogQueue
    ) {
        self.configuration = configuration
        self.media = media
        self.hosts = hosts
        self.directory = directory
        self.log = log
        self.listener = listener
        self.tls = tls
        port = listener.port
        tls?.watch()
    }

    /// So many days before its expiry, a certificate should have been renewed.
    package static let certificateWarningDays = TLSIdentity.warningDays

    /// The certificate of new connections. Nil without TLS.
    package var certificate: ServerCertificate? { tls?.certificate }

    /// How many further participants the limit on open files allows, each with one connection. Nil with `ICE.full`, where
    /// the addresses of the machine count too.
    package var participantsByDescriptors: Int? {
        media == nil ? nil : max(0, Descriptors.left - Descriptors.connectionReserve)
    }

    /// The address for clients on this machine.
    package var url: String {
        let scheme = tls == nil ? "ws" : "https"
        return switch configuration.host {
        case "0.0.0.0", "::": "\(scheme)://127.0.0.1:\(port)"
        case let host where host.contains(":"): "\(scheme)://[\(host)]:\(port)"
        case let host: "\(scheme)://\(host):\(port)"
        }
    }

    /// Starts to listen. Throws for an empty secret, a used port, or an address of another machine.
    package static func start(_ configuration: Configuration) async throws(RoomError) -> RoomServer {
        guard !configuration.service.id.isEmpty, !configuration.service.secret.isEmpty else {
            throw RoomError(.serviceMissing, "The service id or secret is empty. Set both.")
        }
        guard !configuration.service.id.contains(":") else {
            throw RoomError(
                .serviceMissing,
                "The service id has a colon, which HTTP's Basic authentication cannot carry. Choose another id.")
        }
        guard (1...threadLimit).contains(configuration.threads) else {
            throw RoomError(
                .listenFailed,
                "A server cannot run \(configuration.threads) threads for media. Choose 1 to \(threadLimit).")
        }
        if let ports = configuration.mediaPorts, ports.count > 1, ports.count < configuration.threads {
            throw RoomError(
                .listenFailed,
                "The \(ports.count) UDP ports \(ports.lowerBound)-\(ports.upperBound) are too few for "
                    + "\(configuration.threads) threads. Give one port, or one for each thread.")
        }
        Descriptors.raiseLimit()
        let log = LogQueue(configuration.log)
        let tls: TLSIdentity?
        if let files = configuration.tls {
            tls = try TLSIdentity(files, log: log, replaced: configuration.onCertificate)
        } else {
            tls = nil
        }
        let certificate: Certificate
        do throws(TransportError) {
            certificate = try Certificate()
        } catch {
            throw RoomError(.listenFailed, error.message)
        }
        let address = try? SocketAddress.makeAddressResolvingHost(configuration.host, port: 0)
        let isLoopback = address?.isLoopback ?? false
        let impairment = configuration.impairment
        let relays = configuration.relays
        let tokens = AccessTokens()
        let limits = AccessLimits()
        let grace = TimeInterval.seconds(Int64(configuration.graceSeconds))
        let mostReceivers = configuration.maximumReceivers
        let loops = (0..<configuration.threads).map {
            EventLoop(name: $0 == 0 ? "rooms" : "rooms \($0 + 1)", turnClock: configuration.turnClock)
        }
        let media = try await openMediaPorts(configuration, at: address?.ipAddress ?? configuration.host, on: loops)
        let seats = Seats(
            loops: loops.count, maximum: configuration.maximumParticipants, roomLoopSize: configuration.roomLoopSize)
        let numbers = StreamNumbers()
        let hosts = loops.enumerated().map { place, loop in
            RoomHost(
                loop: loop, place: place, seats: seats, log: log, numbers: numbers, port: media?.ports[place],
                recorder: configuration.recorder
            ) { loop in
                SessionSettings(
                    loop: loop, certificate: certificate, scope: scope(of: address), port: media?.ports[place],
                    relays: relays, grace: grace, mostReceivers: mostReceivers, impairment: impairment)
            }
        }
        for host in hosts {
            await host.connect(to: hosts)
            if let renewal = relays?.renewal { await host.renewICEServers(eachSeconds: renewal) }
        }
        let administration = Administration(hosts: hosts, removals: Removals())
        let directory = RoomDirectory(
            hosts: hosts, seats: seats, tokens: tokens, limits: limits, removals: administration.removals)
        let routes = Routes(
            service: configuration.service, tokens: tokens,
            origins: OriginPolicy(
                isLoopbackOnly: isLoopback, isOpen: configuration.isOpen, isEncrypted: tls != nil), limits: limits,
            refusals: RefusalLog(log),
            revoked: { token in directory.revoked(token) },
            statistics: { [started = EventLoop.now] in await statistics(of: hosts, since: started) },
            administration: administration)
        do throws(RoomError) {
            let first = configuration.port
            let messagePace = Pace(
                burst: configuration.messageBurst,
                interval: .seconds(1) / Int64(WebSocketHandler.messagesPerSecond))
            let ports = first == 0 ? 0...0 : first...min(first + configuration.portsTried - 1, 65535)
            let listener = try await HTTPListener.start(
                host: configuration.host, ports: ports, routes: routes, messagePace: messagePace, tls: tls,
                delegate: directory)
            return RoomServer(
                configuration: configuration, hosts: hosts, directory: directory, listener: listener,
                tls: tls, media: media?.addresses, log: log)
        } catch {
            await end(hosts)
            throw error
        }
    }

    /// Media listens on the same addresses as signalling.
    private static func scope(of address: SocketAddress?) -> ListeningScope {
        guard let address, let text = address.ipAddress, text != "0.0.0.0", text != "::" else { return .any }
        return address.isLoopback ? .loopback : .addresses([text])
    }

    /// The largest counts of any turn of a loop.
    package var busiestTurn: TurnCounts {
        get async {
            var busiest = TurnCounts()
            for host in hosts { busiest = await busiest.merged(with: host.busiestTurn) }
            return busiest
        }
    }

    /// How many sessions the media ports have, and how many pairs of addresses lead to them, for tests.
    var portCounts: (sessions: Int, pairs: Int) {
        get async {
            var all = (sessions: 0, pairs: 0)
            for host in hosts {
                guard let counts = await host.portCounts else { continue }
                all = (all.sessions + counts.sessions, all.pairs + counts.pairs)
            }
            return all
        }
    }

    private static func statistics(of hosts: [RoomHost], since started: MonotonicTime) async -> ServerStatistics {
        var loops: [ServerStatistics.Loop] = []
        for host in hosts { loops.append(await host.statistics) }
        return ServerStatistics(seconds: (EventLoop.now - started).seconds, loops: loops)
    }

    /// Notifies every participant, closes every connection and ends the threads.
    package func stop() async {
        tls?.stop()
        for host in hosts { await host.close() }
        log.drain()
        await listener.stop()
        await Self.end(hosts)
    }

    private static func end(_ hosts: [RoomHost]) async {
        for host in hosts { await host.closePort() }
        for host in hosts { host.loop.shutdown() }
    }
}
