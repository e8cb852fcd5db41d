internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import RTP
package import RoomProtocol
package import RoomTLS

/// One HTTP/1.1 request and its response on a separate connection. For small JSON bodies only.
package struct HTTPExchange: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case delete = "DELETE"
    }

    package struct Answer: Sendable, Equatable {
        package var status: Int
        package var body: String
        /// That of the server. Nil without TLS.
        package var certificate: ServerCertificate?
    }

    package var method: Method
    package var path: String
    /// The value of the field of this name.
    package var authorization: String?
    package var body: String?

    package init(_ method: Method, _ path: String, authorization: String? = nil, body: String? = nil) {
        self.method = method
        self.path = path
        self.authorization = authorization
        self.body = body
    }

    /// The longest accepted response, in bytes.
    static let maximumAnswerLength = 256 * 1024

    /// Sends the request and waits for the response, 8 s in all. Throws 1305 if the server is unreachable or does not
    /// respond, and `server.certificate` if its certificate is not accepted.
    package func run(
        at address: ServerAddress, trusting trust: ServerTrust = .system
    ) async throws(RoomError) -> Answer {
        var isConnected = false
        let tls = address.isEncrypted ? try TLSClient(to: address, trusting: trust) : nil
        do {
            let group = MultiThreadedEventLoopGroup.singleton
            let deadline = NIODeadline.now() + SignallingDeadlines.exchange.amount
            let promise = group.any().makePromise(of: Answer.self)
            let request = self
            let channel: any Channel
            do {
                channel = try await ClientBootstrap(group: group)
                    .connectTimeout(SignallingDeadlines.connect.amount)
                    // The request follows the end of a TLS handshake at once.
                    .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHTTPClientHandlers()
                            try channel.pipeline.syncOperations.addHandler(
                                HTTPExchangeHandler(request: request, address: address, promise: promise))
                            try tls?.addHandler(to: channel)
                        }
                    }
                    .connect(host: address.host, port: address.port).get()
            } catch {
                promise.fail(error)
                throw error
            }
            isConnected = true
            let timer = channel.eventLoop.scheduleTask(deadline: deadline) {
                promise.fail(ChannelError.connectTimeout(SignallingDeadlines.exchange.amount))
            }
            defer {
                timer.cancel()
                channel.close(promise: nil)
            }
            return try await promise.futureResult.get()
        } catch {
            throw await unreachable(address, trust, error, isConnected ? Self.fault(error) : nil)
        }
    }

    private static func fault(_ error: any Error) -> HTTPExchangeFault? {
        switch error {
        case is HTTPParserError, is AnswerTooLong: .malformed
        case ChannelError.connectTimeout: nil
        case _ where TLSFault(error) != nil: nil
        default: .broken
        }
    }
}

/// The error for a failed connection.
func unreachable(
    _ address: ServerAddress, _ trust: ServerTrust, _ error: any Error, _ fault: HTTPExchangeFault? = nil
) async -> RoomError {
    switch TLSFault(error) {
    case .certificate: await CertificateExamination.error(for: address, trust, isForAnotherName: false)
    case .name: await CertificateExamination.error(for: address, trust, isForAnotherName: true)
    default: unreachable(address, error, fault)
    }
}

/// The error for a failed connection.
func unreachable(_ address: ServerAddress, _ error: any Error, _ fault: HTTPExchangeFault? = nil) -> RoomError {
    if let error = error as? RoomError { return error }
    let reason = explain(error)
    let hint = reason == "connection refused" && !address.isLoopback ? " \(ServerAddress.loopbackHint)" : ""
    return RoomError(
        .serverUnreachable,
        "The server \(address) is unreachable: \(reason). Check the address, and that a room server runs there.\(hint)",
        fault)
}

/// The plain reason for a failed connection.
func explain(_ error: any Error) -> String {
    switch error {
    case let error as NIOConnectionError:
        if error.dnsAError != nil || error.dnsAAAAError != nil { return "the host name is unknown" }
        if let reason = error.connectionErrors.compactMap({ $0.error as? IOError }).last { return explain(reason) }
        return error.connectionErrors.isEmpty ? "the host name is unknown" : "no connection"
    case ChannelError.connectTimeout: return "the timeout expired"
    case let error as IOError: return String(cString: strerror(error.errnoCode)).lowercased()
    case is HTTPParserError, is ConnectionClosedEarly, is AnswerTooLong:
        return "the response is not that of a room server"
    default: break
    }
    switch TLSFault(error) {
    // An attacker on the way can cause this, so the text must not suggest an address without TLS.
    case .noTLS: return "it answers without TLS, because the port is wrong or something on the way interferes"
    case .handshake: return "the TLS handshake failed"
    case .certificate, .name: return "its certificate is not accepted"
    case nil: return "\(error)"
    }
}

struct ConnectionClosedEarly: Error {}
struct AnswerTooLong: Error {}

extension RTP.TimeInterval {
    var amount: TimeAmount { .nanoseconds(nanoseconds) }
}

/// Assembles a response from its parts, which may end within a character.
struct AnswerAssembly {
    private var status = 0
    private var body = ByteBuffer()

    /// The complete response, or nil. Throws if it exceeds the limit.
    mutating func take(_ part: HTTPClientResponsePart) throws -> HTTPExchange.Answer? {
        switch part {
        case .head(let head): status = Int(head.status.code)
        case .body(var part):
            guard body.readableBytes + part.readableBytes <= HTTPExchange.maximumAnswerLength else {
                throw AnswerTooLong()
            }
            body.writeBuffer(&part)
        case .end: return HTTPExchange.Answer(status: status, body: String(buffer: body))
        }
        return nil
    }
}

private final class HTTPExchangeHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let request: HTTPExchange
    private let address: ServerAddress
    private let promise: EventLoopPromise<HTTPExchange.Answer>
    private var answer = AnswerAssembly()
    private var isAnswered = false

    init(request: HTTPExchange, address: ServerAddress, promise: EventLoopPromise<HTTPExchange.Answer>) {
        self.request = request
        self.address = address
        self.promise = promise
    }

    func channelActive(context: ChannelHandlerContext) {
        var fields = HTTPHeaders([("Host", address.authority), ("Connection", "close")])
        if let authorization = request.authorization { fields.add(name: "Authorization", value: authorization) }
        let body = request.body.map { context.channel.allocator.buffer(string: $0) }
        if body != nil { fields.add(name: "Content-Type", value: "application/json") }
        if body != nil || request.method == .post {
            fields.add(name: "Content-Length", value: String(body?.readableBytes ?? 0))
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method.rawValue), uri: address.path + request.path,
            headers: fields)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if let body { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            guard var answer = try answer.take(unwrapInboundIn(data)) else { return }
            isAnswered = true
            if address.isEncrypted {
                let certificate = try? context.channel.pipeline.syncOperations.nioSSL_peerCertificate()
                answer.certificate = certificate.map(ServerCertificate.init)
            }
            promise.succeed(answer)
        } catch {
            fail(error, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(error, context) }

    func channelInactive(context: ChannelHandlerContext) { fail(ConnectionClosedEarly(), context) }

    private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
        guard !isAnswered else { return }
        isAnswered = true
        promise.fail(error)
        context.close(promise: nil)
    }
}
