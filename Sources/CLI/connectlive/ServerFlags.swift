internal import ArgumentParser
internal import ClientCore
internal import ConnectLiveSDK
internal import Foundation
internal import RoomClient
internal import RoomProtocol

/// The authorities of the server's certificate.
struct AuthoritiesFlag: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "File with the authorities that sign the certificate of an https server (default: CONNECTLIVE_CA, else those of "
                + "the system; for this user's 'serve', its own certificate).",
            valueName: "pem"))
    var ca: String?
}

/// How a command finds its server: by flag, by environment, or by the file that `serve` writes.
struct ServerFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Server address, such as https://rooms.example.org or ws://10.0.0.1:7880 (default: CONNECTLIVE_SERVER, else the "
                + "server of 'serve').",
            valueName: "url"))
    var server: String?

    @OptionGroup var authorities: AuthoritiesFlag

    @Option(help: "Service id (default: CONNECTLIVE_SERVICE_ID, else that of 'serve').") var serviceId: String?

    @Option(help: "Service secret (default: CONNECTLIVE_SERVICE_SECRET, else that of 'serve').")
    var serviceSecret: String?

    /// Throws for an address that can never be reached. A server that is not named yet may be later.
    func checkAddress() throws {
        let given = [server, ProcessInfo.processInfo.environment["CONNECTLIVE_SERVER"]].compactMap(\.self)
        guard let address = given.first(where: { !$0.isEmpty }) else { return }
        do throws(RoomError) {
            _ = try ServerAddress(address)
        } catch {
            throw Failure(code: error.code.number, "\(error)")
        }
    }

    /// The server that these flags lead to: a given one, or that of a running `serve`. Nil if nothing names one.
    var knownAddress: String? {
        let given = [server, ProcessInfo.processInfo.environment["CONNECTLIVE_SERVER"]].compactMap(\.self)
        let file = try? ServerFile.read(from: ServerFile.defaultPath())
        return given.first { !$0.isEmpty } ?? file.flatMap { $0.isRunning ? $0.server : nil }
    }

    /// The server and its secret. Throws if nothing names them.
    func location() throws(RoomError) -> ServerLocation {
        try locator.locate()
    }

    /// Finds the server that these flags lead to.
    var locator: ServerLocator {
        ServerLocator(
            server: server, serviceId: serviceId, serviceSecret: serviceSecret, authorities: authorities.ca)
    }

    /// Signs in. The SDK finds missing values.
    ///
    /// - Parameter waiting: how the command would wait for a server that is not there
    func signIn(waiting advice: String? = nil) async throws {
        let (code, message) = await ConnectLive.signIn(
            serviceId: serviceId ?? "", serviceSecret: serviceSecret ?? "", endpoint: server ?? "",
            authorities: authorities.ca, namer: .command)
        guard code != 0 else { return }
        // No server ever comes to an address that is none.
        let isAddress = (try? checkAddress()) != nil
        let isAbsent = isAddress && (code == RoomError.Code.serverUnreachable.number || knownAddress == nil)
        let start = message.hasSuffix(ServerAddress.loopbackHint) ? " Start it with 'serve --listen 0.0.0.0'." : ""
        throw Failure(code: code, message + start + (isAbsent ? advice.map { " \($0)" } ?? "" : ""))
    }

    /// For commands with the flag.
    static let waitsForever = "With --forever, the command waits for the server."
}

/// A failure that the SDK reported. Its sentence ends with the code's name, or with the number if the code has no name.
struct Failure: Error, CustomStringConvertible {
    let description: String
    /// Whether the administrator wants this program out of the room. It does not join again by itself.
    let isFinal: Bool

    init(code: Int, _ message: String, isFinal: Bool = false) {
        self.isFinal = isFinal
        // An application has no flags, so the message of the SDK names none.
        let message = message.replacing(
            "Name one, or let the room server name one.", with: "Pass --turn URL, here or to 'connectlive serve'."
        ).replacing("publish a file or the test pattern", with: "pass --file FILE or --test-pattern")
        description = message.hasSuffix("]") ? message : "\(message) [\(code)]"
    }
}
