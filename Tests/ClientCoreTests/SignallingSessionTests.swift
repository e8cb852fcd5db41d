import RTP
import RoomProtocol
import Testing

@testable import ClientCore

private let start = MonotonicTime(nanoseconds: 1_000_000_000)

private func at(_ seconds: Double) -> MonotonicTime {
    start + TimeInterval(nanoseconds: Int64(seconds * 1e9))
}

private func session() -> SignallingSession { SignallingSession(server: "ws://there:1", now: start) }

extension SignallingSession.Output {
    fileprivate var end: RoomError? {
        if case .ended(let error) = self { return error }
        return nil
    }

    fileprivate var failure: RoomError? {
        if case .answer(_, .failure(let error)) = self { return error }
        return nil
    }
}

@Test func `a reply is matched to its request, whatever arrives in between`() throws {
    var session = session()
    let (first, text) = try session.request(.subscribe(ViewOfStream(stream: 7)), now: at(0))
    let (second, _) = try session.request(.leave, now: at(0))
    #expect(text == #"{"id":\#(first),"stream":7,"type":"subscribe"}"#)
    #expect(first != second)
    #expect(
        session.receive(#"{"type":"left","id":\#(second)}"#, now: at(0.1)) == [.answer(id: second, .success(.left))])
    let entered = #"{"type":"participantLeft","participant":"p-1","novelty":[1]}"#
    #expect(
        session.receive(entered, now: at(0.1)) == [.message(.participantLeft(ParticipantReference(participant: "p-1")))]
    )
    let answer = #"{"type":"subscribed","id":\#(first),"stream":7,"mid":"4"}"#
    #expect(
        session.receive(answer, now: at(0.2))
            == [.answer(id: first, .success(.subscribed(Subscribed(stream: 7, mid: "4"))))])
    // Once only.
    #expect(session.receive(answer, now: at(0.3)) == [])
}

@Test func `a refusal keeps the server's code and message`() throws {
    var session = session()
    let (id, _) = try session.request(.subscribe(ViewOfStream(stream: 7)), now: at(0))
    let outputs = session.receive(
        #"{"type":"error","id":\#(id),"code":"1328","message":"No such stream."}"#, now: at(0))
    #expect(outputs == [.answer(id: id, .failure(RoomError(.noSuchStream, "No such stream.")))])
}

@Test func `a malformed reply fails its request`() throws {
    var session = session()
    let (id, _) = try session.request(.subscribe(ViewOfStream(stream: 7)), now: at(0))
    let outputs = session.receive(#"{"type":"subscribed","id":\#(id)}"#, now: at(0))
    #expect(outputs.first?.failure?.code == .messageMalformed)
}

@Test func `a message of a later version is ignored`() throws {
    var session = session()
    #expect(session.receive(#"{"type":"sparkle"}"#, now: at(0)) == [])
    #expect(session.ignoredMessages == 1)
    #expect(!session.hasEnded)
    // As an answer it fails its request.
    let (id, _) = try session.request(.subscribe(ViewOfStream(stream: 7)), now: at(0))
    let outputs = session.receive(#"{"type":"sparkle","id":\#(id)}"#, now: at(0))
    #expect(outputs.first?.failure?.code == .messageUnknown)
}

@Test func `a malformed message is reported and the connection continues`() {
    var session = session()
    guard case .notUnderstood(let error) = session.receive("][", now: at(0)).first else {
        Issue.record("nothing was reported")
        return
    }
    #expect(error.code == .messageMalformed)
    #expect(!session.hasEnded)
}

@Test func `it pings every two seconds and measures the pong`() {
    var session = session()
    #expect(session.nextTimeout == at(2))
    #expect(session.handleTimeout(now: at(1.9)) == [])
    #expect(session.handleTimeout(now: at(2)) == [.send(#"{"id":1,"type":"ping"}"#)])
    #expect(session.receive(#"{"type":"pong","id":1}"#, now: at(2.01)) == [])
    #expect(session.handleTimeout(now: at(4)) == [.send(#"{"id":2,"type":"ping"}"#)])
}

@Test func `a silence of five seconds is survived`() throws {
    var session = session()
    let (id, _) = try session.request(.subscribe(ViewOfStream(stream: 7)), now: at(1))
    for second in [2.0, 4, 6] { _ = session.handleTimeout(now: at(second)) }
    #expect(!session.hasEnded)
    let answer = #"{"type":"subscribed","id":\#(id),"stream":7,"mid":"4"}"#
    #expect(session.receive(answer, now: at(6.2)).count == 1)
    #expect(session.handleTimeout(now: at(14)).allSatisfy { $0.end == nil })
}

@Test func `a server that is silent for nine seconds is lost, and every request fails with another join`() throws {
    var session = session()
    session.heard(now: at(1))
    let (id, _) = try session.request(.leave, now: at(1))
    #expect(session.handleTimeout(now: at(9.9)).allSatisfy { $0.end == nil })
    let outputs = session.handleTimeout(now: at(10))
    #expect(outputs.count == 1)
    let error = try #require(outputs.last?.end)
    #expect(error.code == .connectionLost)
    #expect(error.message.contains("ws://there:1"))
    #expect(error.message.contains("9 s"))
    #expect(session.nextTimeout == .never)
    // One more waits, too.
    let (later, text) = try session.request(.leave, now: at(11))
    #expect(text == nil)
    let failures = session.beginAnew(now: at(12))
    #expect(failures.map { $0.failure?.code } == [.connectionLost, .connectionLost])
    guard case .answer(id, _) = failures.first, case .answer(later, _) = failures.last else {
        Issue.record("\(failures)")
        return
    }
    session.end()
    #expect(session.hasEnded)
    #expect(throws: RoomError.self) { try session.request(.leave, now: at(13)) }
}

@Test func `while media arrives a server may be silent for twenty seconds`() throws {
    var session = session()
    for second in stride(from: 1.0, to: 20, by: 1) {
        session.heardMedia(at: at(second))
        #expect(session.handleTimeout(now: at(second)).allSatisfy { $0.end == nil })
    }
    session.heardMedia(at: at(20))
    #expect(session.handleTimeout(now: at(20)).last?.end?.code == .connectionLost)
}

@Test func `nine seconds after the last media a silent server is lost`() throws {
    var session = session()
    session.heardMedia(at: at(2))
    #expect(session.handleTimeout(now: at(10.9)).allSatisfy { $0.end == nil })
    #expect(session.handleTimeout(now: at(11)).last?.end?.code == .connectionLost)
}

@Test func `a request without a reply for twenty seconds ends the connection`() throws {
    var session = session()
    _ = try session.request(.publish(Publish(sdp: "", streams: [])), now: at(0))
    for second in 1..<20 {
        #expect(session.handleTimeout(now: at(Double(second))).allSatisfy { $0.end == nil && $0.failure == nil })
        session.heard(now: at(Double(second)))
    }
    #expect(session.nextTimeout == at(20))
    let error = try #require(session.handleTimeout(now: at(20)).last?.end)
    #expect(error.code == .connectionLost)
    #expect(error.message.contains("'publish'"))
}

@Test func `a reply delayed by a network cut is accepted`() throws {
    var session = session()
    let (id, _) = try session.request(.subscribe(ViewOfStream(stream: 7)), now: at(0))
    for second in 1..<15 {
        session.heardMedia(at: at(Double(second)))
        _ = session.handleTimeout(now: at(Double(second)))
    }
    let answer = #"{"type":"subscribed","id":\#(id),"stream":7,"mid":"4"}"#
    #expect(
        session.receive(answer, now: at(15))
            == [.answer(id: id, .success(.subscribed(Subscribed(stream: 7, mid: "4"))))])
}

@Test func `a socket that closes ends the session once`() {
    var session = session()
    let outputs = session.closed()
    #expect(outputs.count == 1)
    #expect(outputs.first?.end?.code == .connectionLost)
    #expect(session.closed() == [])
    #expect(session.receive(#"{"type":"pong"}"#, now: at(1)) == [])
    #expect(session.handleTimeout(now: at(100)) == [])
}

@Test func `pending requests are limited`() throws {
    var session = session()
    for _ in 0..<SignallingSession.maximumPendingRequests { _ = try session.request(.leave, now: at(0)) }
    #expect(throws: RoomError.self) { try session.request(.leave, now: at(0)) }
}

/// The server sends it again over the socket that resumes.
@Test func `a message that arrives over a socket after that was given up is not heard twice`() throws {
    var session = session()
    session.keep()
    session.suspend()
    let message = #"{"type":"userMessage","from":"p-2","text":"hi","kind":""}"#
    #expect(session.receive(message, now: at(1)) == [])
    let (id, _) = session.resume(token: "a", participant: "p-1", secret: "s", now: at(1))
    #expect(session.receive(message, now: at(1)) == [])
    let answer = #"{"type":"resumed","id":\#(id),"secret":"t","received":0}"#
    let reply = try #require(session.receive(answer, now: at(1)).first)
    guard case .answer(id, .success(.resumed(let body))) = reply else {
        Issue.record("\(reply)")
        return
    }
    _ = try session.resumed(body, now: at(1))
    #expect(session.receive(message, now: at(2)).count == 1)
}

@Test func `the reply to a resumption shows that the server is there, before the next ping does`() throws {
    var session = session()
    session.keep()
    session.suspend()
    let (id, _) = session.resume(token: "a", participant: "p-1", secret: "s", now: at(3))
    let answer = #"{"type":"resumed","id":\#(id),"secret":"t","received":0}"#
    let reply = try #require(session.receive(answer, now: at(3.1)).first)
    guard case .answer(id, .success(.resumed(let body))) = reply else {
        Issue.record("\(reply)")
        return
    }
    #expect(session.answered == .zero)
    _ = try session.resumed(body, now: at(3.1))
    #expect(session.answered == at(3))
}
