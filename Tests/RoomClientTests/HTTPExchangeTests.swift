import NIOCore
import NIOHTTP1
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
