import Foundation
import TestSupport
import Testing

@testable import RoomTLS

@Suite struct PEMFileTests {
    private let folder = TemporaryFolder()

    private func problem<Value>(_ body: () throws(PEMProblem) -> Value) -> String? {
        do throws(PEMProblem) {
            _ = try body()
            return nil
        } catch {
            return error.text
        }
    }

    @Test(arguments: [
        ("rooms.example", true), ("ROOMS.example.", true), ("a.rooms.example", true), ("A.Rooms.Example", true),
        ("a.b.rooms.example", false), (".rooms.example", false), ("xrooms.example", false), ("example", false),
        ("127.0.0.1", false), ("server", false), ("", false), (".", false),
    ])
    func `a certificate is for its names, and for those with one label before the rest of a wildcard`(
        host: String, isFor: Bool
    ) throws {
        let made = try MadeCertificate.chain(in: folder.path)
        #expect(ServerCertificate.isFor(host, try PEMFile.certificates(made.certificate)[0]) == isFor)
    }

    @Test func `a chain has its certificates in their order, and the facts of the first`() throws {
        let made = try MadeCertificate.chain(in: folder.path)
        let chain = try PEMFile.certificates(made.certificate)
        #expect(chain.count == 2)
        let facts = ServerCertificate(chain[0])
        #expect(facts.names == ["rooms.example", "*.rooms.example", "127.0.0.1", "::1"])
        #expect(facts.begins < Date().timeIntervalSince1970 && facts.expires > Date().timeIntervalSince1970)
        #expect(facts.daysLeft(now: facts.expires - 86400 * 2.5) == 2)
        #expect(facts.daysLeft(now: facts.expires + 1) == -1)
        #expect(ServerCertificate.day(1_795_960_000) == "2026-11-29")
        try facts.pem.write(toFile: folder.path + "/leaf.pem", atomically: true, encoding: .utf8)
        #expect(try PEMFile.certificates(folder.path + "/leaf.pem") == [chain[0]])
        #expect(problem { () throws(PEMProblem) in try PEMFile.key(made.key) } == nil)
    }

    @Test func `a file that is cut anywhere within its last block has a problem, and never a part of its certificates`()
        throws
    {
        let made = try MadeCertificate.chain(in: folder.path)
        let whole = Array(try Data(contentsOf: URL(fileURLWithPath: made.certificate)))
        let second = try #require(String(decoding: whole, as: UTF8.self).ranges(of: "-----BEGIN").last)
        let start = String(decoding: whole, as: UTF8.self)[..<second.lowerBound].utf8.count
        let cut = folder.path + "/cut.pem"
        // The last characters are dashes and the end of the line, without which the block is complete.
        for end in stride(from: start + "-----BEGIN ".utf8.count, to: whole.count - 30, by: 7) {
            try Data(whole[..<end]).write(to: URL(fileURLWithPath: cut))
            let text = problem { () throws(PEMProblem) in try PEMFile.certificates(cut) }
            #expect(text == "ends in the middle of a block", "cut at \(end)")
        }
    }

    @Test func `a missing file, one of something else, and a key with a passphrase have problems of their own`() throws
    {
        let path = folder.path + "/x"
        #expect(problem { () throws(PEMProblem) in try PEMFile.certificates(path) } == "does not exist")
        try "hello".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(problem { () throws(PEMProblem) in try PEMFile.certificates(path) } == "has no certificate in PEM form")
        #expect(
            problem { () throws(PEMProblem) in try PEMFile.key(path) }
                == "has no private key in PEM form, or one with a passphrase")
        let made = try MadeCertificate.chain(in: folder.path)
        try MadeCertificate.openssl(
            ["ec", "-in", made.key, "-aes128", "-passout", "pass:secret", "-out", path], in: folder.path)
        #expect(
            problem { () throws(PEMProblem) in try PEMFile.key(path) }
                == "has no private key in PEM form, or one with a passphrase")
    }
}
