import PeerLoop
import RoomClient
import Testing

@testable import ConnectLiveSDK

struct IceServerTests {
    @Test func `the policy of the environment holds unless a Config has its own, with or without servers of its own`()
        throws
    {
        let environment = TURNSettings(environment: ["CONNECTLIVE_ICE_POLICY": "relay"])
        var config = Config()
        for servers in [[], [IceServer(urls: ["turn:a"], name: "u", credential: "p")]] {
            config.iceServers = servers
            config.iceTransportPolicy = nil
            #expect(try config.servers(with: environment).get().policy == .relay)
            config.iceTransportPolicy = .all
            #expect(try config.servers(with: environment).get().policy == .all)
        }
    }

    @Test func `the authorities of named servers are the caller's, else those of the environment`() throws {
        let environment = TURNSettings(environment: ["CONNECTLIVE_TURN_CA": "/variable.pem"])
        var config = Config()
        #expect(try config.servers(with: environment).get().authorities == "/variable.pem")
        config.namedServerAuthorities = "Package.swift"
        #expect(try config.servers(with: environment).get().authorities?.hasSuffix("/Package.swift") == true)
    }
}
