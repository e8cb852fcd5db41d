internal import ArgumentParser
internal import ConnectLiveSDK
internal import RoomClient

/// How a command finds its server: by flag, else by environment, else by the file that `serve` leaves.
struct ServerFlags: ParsableArguments {
    @Option(help: "Server address, ws://HOST:PORT (else CONNECTLIVE_SERVER, else the one that 'serve' left).")
    var server: String?

    @Option(help: "Service id (else CONNECTLIVE_SERVICE_ID, else the one that 'serve' left).") var serviceId: String?

    @Option(help: "Service secret (else CONNECTLIVE_SERVICE_SECRET, else the one that 'serve' left).")
    var serviceSecret: String?

    /// Signs in; the SDK searches for what is not given.
    func signIn() async throws {
        let (code, message) = await ConnectLive.signIn(
            serviceId: serviceId ?? "", serviceSecret: serviceSecret ?? "", endpoint: server ?? "", namer: .command)
        guard code == 0 else { throw Failure(code: code, message) }
    }
}

/// A failure that the SDK reported. Its sentence ends with the code's name where the code has one; else the number is
/// added.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(code: Int, _ message: String) {
        description = message.hasSuffix("]") ? message : "\(message) [\(code)]"
    }
}
