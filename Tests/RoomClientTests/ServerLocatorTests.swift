import Foundation
import RoomProtocol
import TestSupport
import Testing

@testable import RoomClient

private let written = ServerFile(server: "ws://127.0.0.1:7881", serviceId: "file-id", serviceSecret: "file-secret")

private func message(_ body: () throws(RoomError) -> Void) -> RoomError? {
    do throws(RoomError) {
        try body()
        return nil
    } catch {
        return error
    }
}

@Test func `given values win over the environment, and the environment over the file`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/connectlive/server.json"
    try written.write(to: path)
    let environment = [
        "CONNECTLIVE_SERVER": "ws://10.0.0.1:1", "CONNECTLIVE_SERVICE_ID": "environment-id",
        "CONNECTLIVE_SERVICE_SECRET": "environment-secret",
    ]
    let given = try ServerLocator(server: "ws://10.0.0.2:2", environment: environment, filePath: path).locate()
    #expect(given.address.description == "ws://10.0.0.2:2")
    #expect(given.serviceId == "environment-id")
    #expect(given.serviceSecret == "environment-secret")
    let fromFile = try ServerLocator(server: "", environment: [:], filePath: path).locate()
    #expect(fromFile.address.description == written.server)
    #expect(fromFile.serviceId == "file-id")
}

@Test func `the secret of the file does not go with another service's id`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/server.json"
    try written.write(to: path)
    let error = message { () throws(RoomError) in
        _ = try ServerLocator(serviceId: "other", environment: [:], filePath: path).locate()
    }
    #expect(error?.code == .serviceMissing && error?.message.contains("service secret") == true)
    let wrong = try ServerLocator(serviceSecret: "other", environment: [:], filePath: path).locate()
    #expect(wrong.serviceId == "file-id" && wrong.serviceSecret == "other")
    let same = try ServerLocator(serviceId: "file-id", environment: [:], filePath: path).locate()
    #expect(same.serviceSecret == "file-secret")
}

@Test func `without any server the message names the places that were searched`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/server.json"
    let error = message { () throws(RoomError) in _ = try ServerLocator(environment: [:], filePath: path).locate() }
    #expect(error?.code == .serviceMissing)
    #expect(error?.message.contains(path) == true)
    let noSecret = message { () throws(RoomError) in
        _ = try ServerLocator(server: "ws://a:1", serviceId: "x", environment: [:], filePath: path).locate()
    }
    #expect(noSecret?.message.contains("--service-secret") == true)
}

@Test(arguments: [
    (
        ServerNamer.application, "pass endpoint, serviceId and serviceSecret to ConnectLive.signIn, or set ",
        "pass serviceSecret to ConnectLive.signIn, or set "
    ),
    (.command, "pass --server, --service-id and --service-secret, or set ", "pass --service-secret, or set "),
    (.node, "set server, service-id and service-secret of the node, or ", "set service-secret of the node, or "),
])
func `an error names the place for the missing value`(namer: ServerNamer, server: String, secret: String) {
    let path = "/nonexistent/server.json"
    let noServer = message { () throws(RoomError) in
        _ = try ServerLocator(environment: [:], filePath: path, namer: namer).locate()
    }
    #expect(noServer?.message.contains("\(server)CONNECTLIVE_SERVER, CONNECTLIVE_SERVICE_ID and ") == true)
    let noSecret = message { () throws(RoomError) in
        _ = try ServerLocator(server: "ws://a:1", serviceId: "x", environment: [:], filePath: path, namer: namer)
            .locate()
    }
    #expect(noSecret?.message.contains("\(secret)CONNECTLIVE_SERVICE_SECRET.") == true)
}

@Test func `a token needs no secret`() throws {
    let location = try ServerLocator(
        server: "ws://a:1", serviceId: "x", environment: [:], filePath: "/nonexistent/server.json"
    ).locate(needsSecret: false)
    #expect(location.serviceSecret == nil)
}

@Test func `the server file is private: mode 0600, in a folder of mode 0700`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/connectlive/server.json"
    try written.write(to: path)
    let files = FileManager.default
    #expect(try files.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    #expect(try files.attributesOfItem(atPath: folder.path + "/connectlive")[.posixPermissions] as? Int == 0o700)
    #expect(try ServerFile.read(from: path) == written)
    #expect(try files.contentsOfDirectory(atPath: folder.path + "/connectlive") == ["server.json"])
}

@Test(arguments: [0o640, 0o604, 0o620, 0o602])
func `a server file that other users can access is refused`(mode: Int) throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/connectlive/server.json"
    try written.write(to: path)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    let error = message { () throws(RoomError) in _ = try ServerFile.read(from: path) }
    #expect(error?.message.contains("0600") == true)
    // With all values given, the file is not needed.
    let complete = ServerLocator(
        server: "ws://a:1", serviceId: "x", serviceSecret: "y", environment: [:], filePath: path)
    #expect(message { () throws(RoomError) in _ = try complete.locate() } == nil)
}

@Test func `a symbolic link in place of the server file is refused`() throws {
    let folder = TemporaryFolder()
    try written.write(to: folder.path + "/connectlive/real.json")
    let path = folder.path + "/connectlive/server.json"
    try FileManager.default.createSymbolicLink(
        atPath: path, withDestinationPath: folder.path + "/connectlive/real.json")
    #expect(message { () throws(RoomError) in _ = try ServerFile.read(from: path) } != nil)
}

@Test func `a server file is removed only by the server that wrote it`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/connectlive/server.json"
    var other = written
    other.server = "ws://127.0.0.1:9"
    try other.write(to: path)
    written.remove(from: path)
    #expect(try ServerFile.read(from: path) == other)
    // Another server that ended may have written the certificate that it had found.
    var renewed = other
    renewed.certificate = "new"
    renewed.remove(from: path)
    #expect(try ServerFile.read(from: path) == nil)
}

@Test func `a server that ends gives the file back to the running server that it replaced`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/connectlive/server.json"
    var (first, second) = (written, written)
    (first.process, second.process) = (getpid(), getpid())
    second.server = "ws://127.0.0.1:9"
    try second.write(to: path)
    second.remove(from: path, restoring: first)
    #expect(try ServerFile.read(from: path) == first)
    // No process has this number.
    first.process = .max
    try second.write(to: path)
    second.remove(from: path, restoring: first)
    #expect(try ServerFile.read(from: path) == nil)
}

@Test(arguments: [
    ("ws://127.0.0.1:7880", "ws://127.0.0.1:7880"), ("http://host.example:81/", "http://host.example:81"),
    ("localhost", "ws://localhost:7880"), ("[::1]:5", "ws://[::1]:5"),
])
func `addresses are read in all usual forms`(text: String, shown: String) throws {
    #expect(try ServerAddress(text).description == shown)
}

@Test(arguments: ["", "ws://", "ws://a:0", "ws://a:65536", "ws://a:b", "ftp://a", "ws://a:1/pa th", "a b:1"])
func `an unusable address is refused with a message`(text: String) {
    let error = message { () throws(RoomError) in _ = try ServerAddress(text) }
    #expect(error?.message.contains("ws://127.0.0.1:7880") == true)
}
