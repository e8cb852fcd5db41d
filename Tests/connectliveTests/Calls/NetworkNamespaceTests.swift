import Foundation
import Glibc
import Testing
import TestSupport

/// Behaviour between machines, which are network namespaces of Tests/interop/network. Needs root, or a kernel that
/// lets users create namespaces; otherwise these tests fail with that reason.
@Suite(.serialized) struct NetworkNamespaceTests {
    @Test func `a server on all addresses is reachable from other machines`() throws {
        try expect("a_server_on_all_addresses_is_used_from_other_machines")
    }

    @Test func `a network without IPv4 carries a room`() throws {
        try expect("a_network_with_ipv6_alone_carries_a_room")
    }

    @Test func `where UDP is blocked, media goes through a TURN server over TCP`() throws {
        try expect("where_udp_is_blocked_media_goes_through_turn_over_tcp")
    }

    @Test func `where UDP is blocked during a call, media goes on through a TURN server`() throws {
        try expect("a_call_whose_udp_is_blocked_goes_on_through_turn", seconds: 90)
    }

    @Test func `without UDP and a TURN server, a sentence says how to get through`() throws {
        try expect("without_udp_and_turn_a_sentence_says_what_to_do")
    }

    @Test func `a publisher and a viewer behind a NAT have a call, and doctor prints its public address`() throws {
        try expect("a_publisher_and_a_viewer_behind_a_nat_have_a_call")
    }

    @Test func `a server behind a NAT is reached at its public address`() throws {
        try expect("a_server_behind_a_nat_is_reached_at_its_public_address")
    }

    @Test func `a server with full ICE behind a NAT reaches a client at the address that STUN tells`() throws {
        try expect("a_server_that_checks_addresses_reaches_a_client_at_the_one_that_stun_tells")
    }

    @Test func `a NAT that translates UDP to other ports during a call is survived, unseen by others`() throws {
        try expect("a_nat_that_translates_udp_to_other_ports_is_survived")
    }

    @Test func `a NAT that gets another address during a call is survived, unseen by others`() throws {
        try expect("a_nat_that_gets_another_address_is_survived")
    }

    /// One Chromium sends three temporal layers, and another one logs the packets that its link carries.
    @Test(arguments: ["vp8", "vp9"])
    func `a narrow viewer of a browser gets fewer temporal layers, and all that those depend on`(codec: String) throws {
        try expect("a_narrow_viewer_of_a_browser_gets_fewer_temporal_layers_of_\(codec)", seconds: 240)
    }

    @Test func `a server on one address announces only that address`() throws {
        try expect("a_server_on_one_address_gives_that_address_alone")
    }

    @Test func `a server on loopback announces only loopback and is unreachable from other machines`() throws {
        try expect("a_server_on_loopback_stays_on_its_machine")
    }

    @Test func `a page on another machine gets a token only with --open`() throws {
        try expect("a_page_elsewhere_has_a_token_only_of_an_open_server")
    }

    @Test func `a network cut of five seconds is survived`() throws {
        try expect("a_cut_of_five_seconds_is_survived")
    }

    @Test func `a server, publisher or viewer that is stopped for five seconds continues`() throws {
        try expect("a_process_that_is_stopped_for_five_seconds_goes_on")
    }

    @Test func `a longer network cut is survived by publishers and subscribers, unseen by others`() throws {
        try expect("a_longer_cut_is_survived")
    }

    @Test func `a publisher and a viewer whose addresses change go on, unseen by others`() throws {
        try expect("an_address_that_changes_is_survived", seconds: 90)
    }

    @Test func `a publisher with --forever publishes again after a longer network cut`() throws {
        try expect("a_lasting_publisher_returns_after_a_longer_cut", seconds: 120)
    }

    @Test func `without a grace period, a participant that is killed, stopped or unplugged is gone within ten seconds`()
        throws
    {
        try expect("a_participant_that_dies_or_falls_silent_is_gone_within_ten_seconds")
    }

    @Test func `the demo on all addresses prints every address for browsers on other machines`() throws {
        try expect("the_demo_names_each_address_a_browser_elsewhere_can_open")
    }

    /// Runs one behaviour. Nothing outlives the script: its processes end with it, and then the namespaces.
    private func expect(_ behaviour: String, seconds: Double = 60) throws {
        let folder = TemporaryFolder()
        let log = folder.file("log")
        try #require(FileManager.default.createFile(atPath: log, contents: nil))
        let output = try #require(FileHandle(forWritingAtPath: log))
        let process = Process()
        process.executableURL = Checkout.folder.appending(path: "Tests/interop/network/behaviours.py")
        process.arguments = ["--connectlive", try CommandLineTool.path, "--folder", folder.path, behaviour]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let deadline = ContinuousClock.now + .seconds(seconds)
        while process.isRunning, ContinuousClock.now < deadline { usleep(20_000) }
        let ended = !process.isRunning
        if !ended { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        let said = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        #expect(ended, "\(behaviour) still ran after \(seconds) s: \(said)")
        #expect(process.terminationStatus == 0, "\(said)")
        #expect(said.hasPrefix("passed  \(behaviour)"), "\(said)")
    }
}
