import NIOCore
import NIOHTTP1
import RoomProtocol
import Testing

@testable import RoomClient

@Test func `a response may be cut within a character`() throws {
    let text = #"{"message":"가방이 – 없습니다"}"#
    var assembly = AnswerAssembly()
    #expect(try assembly.take(.head(HTTPResponseHead(version: .http1_1, status: .forbidden))) == nil)
    for byte in text.utf8 { #expect(try assembly.take(.body(ByteBuffer(bytes: [byte]))) == nil) }
    #expect(try assembly.take(.end(nil)) == HTTPExchange.Answer(status: 403, body: text))
}

@Test func `a response that is too long is refused`() throws {
    var assembly = AnswerAssembly()
    let half = ByteBuffer(repeating: 32, count: HTTPExchange.maximumAnswerLength / 2)
    for _ in 0..<2 { #expect(try assembly.take(.body(half)) == nil) }
    #expect(throws: AnswerTooLong.self) { try assembly.take(.body(ByteBuffer(bytes: [32]))) }
}

@Test func `a token is taken where no server checks it, and refused by a server that does`() throws {
    let address = try ServerAddress("ws://127.0.0.1:5")
    func code(_ status: Int, _ body: String) -> RoomError.Code? {
        do throws(RoomError) {
            try AccessToken.check(HTTPExchange.Answer(status: status, body: body), at: address)
            return nil
        } catch {
            return error.code
        }
    }
    #expect([code(204, ""), code(404, "Not found.\n"), code(405, "")] == [nil, nil, nil])
    let refusal = #"{"code":"-11005","message":"The access token is unknown."}"#
    #expect([code(401, refusal), code(404, refusal)] == [.tokenInvalid, .tokenInvalid])
    #expect([code(401, ""), code(502, "")] == [.signInFailed, .signInFailed])
}
