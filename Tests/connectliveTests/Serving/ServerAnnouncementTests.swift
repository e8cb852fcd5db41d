import Foundation
import RoomProtocol
import TestSupport
import Testing

@testable import connectlive

/// The server file of two servers of one user.
@Suite struct ServerAnnouncementTests {
    private let folder = TemporaryFolder()

    @Test func `a server whose certificate was replaced while another one ran too is found with the new one`() throws {
        let path = folder.file("run/server.json")
        // Both of processes that run: the test's and its parent.
        let first = ServerFile(
            server: "https://127.0.0.1:1", serviceId: "a", serviceSecret: "b", process: getpid(), certificate: "old")
        let second = ServerFile(
            server: "https://127.0.0.1:2", serviceId: "c", serviceSecret: "d", process: getppid(), certificate: "other")
        let announcement = try ServerAnnouncement(first, at: path)
        let other = try ServerAnnouncement(second, at: path)
        announcement.replace("new")
        announcement.correct()
        #expect(try ServerFile.read(from: path) == second)
        other.end()
        #expect(try ServerFile.read(from: path) == first)
        announcement.correct()
        #expect(try ServerFile.read(from: path)?.certificate == "new")
        announcement.end()
        #expect(try ServerFile.read(from: path) == nil)
        announcement.correct()
        #expect(try ServerFile.read(from: path) == nil)
    }
}
