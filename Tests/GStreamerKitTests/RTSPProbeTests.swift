import Foundation
import Glibc
import MediaGraph
import TestFixtures
import Testing

@testable import GStreamerKit

/// Network cameras are probed before anything runs; see ../fixtures/rtsp_server.py.
@Suite(.serialized) struct RTSPProbeTests {
    private func describe(
        _ text: String, verifyingCertificate: Bool = true, seconds: Double = 60
    ) throws -> NetworkCamera {
        try RTSPProbe.describe(
            try #require(RTSPAddress(text)), verifyingCertificate: verifyingCertificate, seconds: seconds)
    }

    private func failure(_ text: String, seconds: Double = 5) throws -> RTSPProbe.Failure? {
        let address = try #require(RTSPAddress(text))
        do throws(RTSPProbe.Failure) {
            _ = try RTSPProbe.describe(address, seconds: seconds)
            return nil
        } catch {
            return error
        }
    }

    @Test("A camera lists the codecs at each of its mounts")
    func codecs() throws {
        let names = [
            "h264": "H264", "h265": "H265", "vp8": "VP8", "mjpeg": "JPEG", "mpeg4": "MP4V-ES", "opus": "OPUS",
            "aac": "MPEG4-GENERIC", "pcmu": "PCMU", "pcma": "PCMA",
        ]
        let server = try Fixture.rtspServer()
        for (mount, codecs) in server.answer.mounts where mount != "/mpeg4" {
            let camera = try describe(server.answer.url + mount)
            #expect(camera.video?.payloadFormat == codecs["video"].flatMap { names[$0] }, "\(mount)")
            #expect(camera.audio?.payloadFormat == codecs["audio"].flatMap { names[$0] }, "\(mount)")
        }
        let camera = try describe(server.answer.url + "/h264-aac")
        #expect(camera.video?.clockRate == 90_000 && camera.video?.framesPerSecond == 15)
        #expect(camera.audio?.clockRate == 48_000 && camera.audio?.channels == 2)
    }

    @Test("The reasons why a camera does not respond are distinguished within the timeout")
    func failures() throws {
        let server = try Fixture.rtspServer()
        #expect(try failure(server.answer.url + "/nowhere") == .notFound)
        #expect(
            try failure("rtsp://no-such-host.invalid/camera")
                == .unreachable("the host no-such-host.invalid does not exist"))
        let deaf = try Listener()
        #expect(try failure("rtsp://127.0.0.1:\(deaf.port)/", seconds: 0.3) == .silent)
        let port = deaf.port
        deaf.close()
        #expect(try failure("rtsp://127.0.0.1:\(port)/") == .unreachable("nothing listens on port \(port) there"))
    }

    @Test("Another server is not mistaken for a camera")
    func notRTSP() throws {
        for greeting in ["HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ready\r\n", ""] {
            let other = try Listener()
            other.answerOnce(with: greeting)
            #expect(try failure("rtsp://127.0.0.1:\(other.port)/") == .notRTSP, "\(greeting)")
        }
    }

    @Test("A camera with a password admits only clients that know it")
    func password() throws {
        let server = try Fixture.rtspServer("--user", "guard", "--password", "p@ss:word")
        let place = server.answer.url.dropFirst("rtsp://".count)
        #expect(try failure("rtsp://\(place)/h264") == .unauthorized(wereGiven: false))
        #expect(try failure("rtsp://guard:wrong@\(place)/h264") == .unauthorized(wereGiven: true))
        #expect(try describe("rtsp://guard:p%40ss%3aword@\(place)/h264").video?.payloadFormat == "H264")
    }

    @Test("Digest authentication follows RFC 2617")
    func digest() throws {
        let server = try Fixture.rtspServer("--user", "guard", "--password", "secret", "--digest")
        let place = server.answer.url.dropFirst("rtsp://".count)
        #expect(try failure("rtsp://guard:wrong@\(place)/h264") == .unauthorized(wereGiven: true))
        #expect(try describe("rtsp://guard:secret@\(place)/h264").video?.payloadFormat == "H264")
    }

    @Test("A camera that asks for a digest other than MD5 is refused by the scheme's name")
    func otherDigest() throws {
        let camera = try Listener()
        camera.answerOnce(
            with: "RTSP/1.0 401 Unauthorized\r\nCSeq: 0\r\n"
                + "WWW-Authenticate: Digest realm=\"a\", nonce=\"b\", algorithm=SHA-256\r\n\r\n")
        #expect(try failure("rtsp://user:secret@127.0.0.1:\(camera.port)/") == .unknownScheme("Digest"))
    }

    @Test("A camera with TLS is read if its certificate is trusted, or need not be")
    func encrypted() throws {
        let server = try Fixture.rtspServer("--tls", "--user", "guard", "--password", "secret")
        let place = server.answer.url.dropFirst("rtsps://".count)
        let url = "rtsps://guard:secret@\(place)/h264-opus"
        #expect(try failure(url) == .untrusted("this machine does not know its issuer"))
        let camera = try describe(url, verifyingCertificate: false)
        #expect(camera.map(\.payloadFormat) == ["H264", "OPUS"])
        // Neither side waits forever for the other's bytes.
        let plain = try Fixture.rtspServer()
        let confused = plain.answer.url.replacingOccurrences(of: "rtsp:", with: "rtsps:")
        #expect(try failure(confused + "/h264") == .unreachable("it does not speak TLS"))
    }
}

/// A TCP port that listens and sends nothing, or one text.
private final class Listener {
    private let descriptor: Int32
    let port: Int

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = descriptor
        port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                guard bind(socket, $0, size) == 0, listen(socket, 4) == 0, getsockname(socket, $0, &size) == 0 else {
                    return 0
                }
                return Int(UInt16(bigEndian: pointer.pointee.sin_port))
            }
        }
        try #require(port > 0)
    }

    /// Accepts one connection, sends this text, and ends it.
    func answerOnce(with text: String) {
        let socket = descriptor
        Thread.detachNewThread {
            let peer = accept(socket, nil, nil)
            _ = Array(text.utf8).withUnsafeBytes { send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            Glibc.close(peer)
        }
    }

    func close() {
        Glibc.close(descriptor)
    }
}
