import Foundation
import PeerLoop
import RoomClient
import RoomProtocol
import Testing
import TestSupport

struct TURNSettingsTests {
    @Test func `the environment names servers with a user and password, and a caller's values come first`() throws {
        let folder = TemporaryFolder()
        try Data().write(to: URL(fileURLWithPath: folder.file("ca.pem")))
        var settings = TURNSettings(environment: [
            "CONNECTLIVE_TURN": "turn:a, turns:b:443,,", "CONNECTLIVE_TURN_USER": "ada",
            "CONNECTLIVE_TURN_PASSWORD": "lovelace", "CONNECTLIVE_TURN_CA": folder.file("ca.pem"),
            "CONNECTLIVE_ICE_POLICY": "relay",
        ])
        var servers = try settings.servers()
        #expect(servers.servers.map(\.host) == ["a", "b"])
        #expect(servers.servers.allSatisfy { $0.username == "ada" && $0.credential == "lovelace" })
        #expect(servers.servers.allSatisfy { $0.authorities == folder.file("ca.pem") && $0.origin == .configured })
        #expect(servers.policy == .relay)
        (settings.urls, settings.user, settings.policy) = (["turn:c"], "grace", .all)
        servers = try settings.servers()
        #expect(servers.servers.map(\.host) == ["c"])
        #expect(servers.servers.first?.username == "grace")
        #expect(servers.policy == .all)
    }

    @Test func `nothing is named by an empty environment, and a STUN server needs no user`() throws {
        #expect(try TURNSettings(environment: [:]).servers() == ICEServers())
        #expect(try TURNSettings(environment: ["CONNECTLIVE_TURN": "stun:a"]).servers().servers.count == 1)
    }

    @Test func `an unusable setting is refused without its password`() {
        for environment in [
            ["CONNECTLIVE_TURN": "turn:a"], ["CONNECTLIVE_TURN": "turn:a", "CONNECTLIVE_TURN_USER": "u"],
            ["CONNECTLIVE_TURN": "a", "CONNECTLIVE_TURN_USER": "u", "CONNECTLIVE_TURN_PASSWORD": "hidden"],
            ["CONNECTLIVE_ICE_POLICY": "none"],
            ["CONNECTLIVE_TURN": Array(repeating: "stun:a", count: 9).joined(separator: ",")],
        ] {
            #expect {
                try TURNSettings(environment: environment).servers()
            } throws: {
                let error = $0 as? RoomError
                return error?.code == .settingInvalid && error?.message.contains("hidden") == false
            }
        }
    }

    @Test func `a relative file with authorities gets its absolute path, and a missing one is refused by name`() throws
    {
        let key = ["CONNECTLIVE_TURN_USER": "u", "CONNECTLIVE_TURN_PASSWORD": "p"]
        var settings = TURNSettings(environment: key)
        (settings.urls, settings.authorities) = (["turns:a"], "Package.swift")
        let here = FileManager.default.currentDirectoryPath
        #expect(try settings.servers().servers.first?.authorities == "\(here)/Package.swift")
        settings.authorities = "no-such.pem"
        // Without servers of its own, the caller means those that the room server names.
        for urls in [["turns:a"], []] {
            settings.urls = urls
            #expect {
                try settings.servers()
            } throws: {
                ($0 as? RoomError)?.message.contains("\(here)/no-such.pem") == true
            }
        }
        settings.authorities = "Package.swift"
        #expect(try settings.servers().authorities == "\(here)/Package.swift")
    }
}
