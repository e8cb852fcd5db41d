import Foundation
import RoomProtocol
import Testing

@testable import ConnectLiveSDK
@testable import RoomClient

/// The words of errors that an application sees. scripts/check-errors reads those of the sources.
@Suite struct MessageTextTests {
    @Test func `errors of a sign-in without a server or a key name parameters and variables`() {
        let path = "/nonexistent/server.json"
        for locator in [
            ServerLocator(environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "https://a", environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "https://a", serviceId: "b", environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "ftp://a", environment: [:], filePath: path, namer: .application),
            ServerLocator(server: "https://a?b", environment: [:], filePath: path, namer: .application),
        ] {
            do throws(RoomError) {
                _ = try locator.locate()
                Issue.record("A server was found.")
            } catch {
                #expect(!error.message.contains("--") && !error.message.contains("connectlive serve"), "\(error)")
            }
        }
    }

    @Test func `errors of a server that is not reached, or not accepted, name no command`() async throws {
        for address in ["ws://127.0.0.1:1", "https://127.0.0.1:1/p"] {
            let address = try ServerAddress(address)
            for error: any Error in [ConnectionClosedEarly(), AnswerTooLong()] {
                let text = unreachable(address, error).message
                #expect(!text.contains("--") && !text.contains("connectlive "), "\(text)")
            }
            for trust in [ServerTrust.system, .authorities("/ca.pem"), .serverFile("/server.json")] {
                for isForAnotherName in [true, false] {
                    let text = CertificateExamination.error(address, trust, isForAnotherName, nil, now: 0).message
                    #expect(!text.contains("--") && !text.contains("connectlive "), "\(text)")
                }
            }
        }
    }
}
