internal import ArgumentParser
internal import ConnectLiveSDK
internal import RoomClient

/// How a command finds its server: by flag, by environment, or by the file that `serve` writes.
struct ServerFlags: ParsableArguments {
    @Option(help: "Server address, ws://HOST:PORT (default: CONNECTLIVE_SERVER, else the server of 'serve').")
    var server: String?

    @Option(help: "Service id (default: CONNECTLIVE_SERVICE_ID, else that of 'serve').") var serviceId: String?

    @Option(help: "Service secret (default: CONNECTLIVE_SERVICE_SECRET, else that of 'serve').")
    var serviceSecret: String?

    /// Signs in. The SDK finds missing values.
    func signIn() async throws {
        let (code, message) = await ConnectLive.signIn(
            serviceId: serviceId ?? "", serviceSecret: serviceSecret ?? "", endpoint: server ?? "", namer: .command)
        guard code == 0 else { throw Failure(code: code, message) }
    }
}

/// A failure that the SDK reported. Its sentence ends with the code's name, or with the number if the code has no name.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(code: Int, _ message: String) {
        description = message.hasSuffix("]") ? message : "\(message) [\(code)]"
    }
}
