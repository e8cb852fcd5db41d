/// An error of a room, for users and peers: one sentence and a stable code.
public struct RoomError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A stable code. The wire and the command line show `name`. The SDK's callbacks pass `number`, as the original's
    /// do. docs/errors.md lists every code.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        public let name: String
        public let number: Int

        /// A code of the original SDK. Its name is its number.
        public init(_ number: Int) {
            self.name = String(number)
            self.number = number
        }

        public init(name: String, number: Int) {
            self.name = name
            self.number = number
        }

        public var description: String { name }

        /// Whether media cannot flow, although the server may be there.
        package var isOfMediaConnection: Bool { [1411, 1413].contains(number) || (2041...2045).contains(number) }
    }

    public var code: Code
    public var message: String
    /// The fault of the HTTP exchange that failed. Nil for other errors.
    package var exchangeFault: HTTPExchangeFault?

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package init(_ code: Code, _ message: String, _ fault: HTTPExchangeFault?) {
        self.init(code, message)
        exchangeFault = fault
    }

    public var description: String { "\(message) [\(code)]" }
}

/// Why an HTTP exchange with a server that was reached has failed.
package enum HTTPExchangeFault: Sendable, Equatable {
    /// The server replied with this status and body.
    case status(Int, body: String)
    /// The reply has no body.
    case empty
    /// The reply is not HTTP, or too long.
    case malformed
    /// The connection ended before the reply.
    case broken
}

extension RoomError.Code {
    // The original SDK's codes in use.
    public static let renewalFailed = Self(1101)
    public static let authenticationReleased = Self(1102)
    public static let serviceMissing = Self(1103)
    public static let signInResponseUnreadable = Self(1104)
    public static let signInFailed = Self(1105)
    public static let notSignedIn = Self(1106)
    public static let cameraUnavailable = Self(1201)
    public static let nothingToCapture = Self(1202)
    public static let roomNameInvalid = Self(1301)
    public static let roomReleased = Self(1302)
    public static let enterResponseInvalid = Self(1303)
    public static let signedOut = Self(1304)
    public static let serverUnreachable = Self(1305)
    public static let mediaMissing = Self(1311)
    public static let connectionLost = Self(1312)
    public static let alreadySubscribed = Self(1321)
    public static let receiversExhausted = Self(1322)
    public static let nothingToSubscribe = Self(1323)
    public static let nothingToUnsubscribe = Self(1324)
    public static let downSessionReleased = Self(1325)
    public static let receiverUnavailable = Self(1326)
    public static let notSubscribed = Self(1327)
    public static let noSuchStream = Self(1328)
    public static let subscribeFailed = Self(1329)
    public static let unsubscribeFailed = Self(1331)
    public static let pauseFailed = Self(1351)
    public static let profileUnsupported = Self(1352)
    public static let profileFailed = Self(1353)
    public static let videoReleased = Self(1354)
    public static let peerFailed = Self(1401)
    public static let signallingFull = Self(1403)
    public static let mediaConnectionFailed = Self(1411)
    public static let peerClosed = Self(1412)
    public static let mediaConnectionLost = Self(1413)
    public static let tokenNotReplaced = Self(1421)
    public static let offerRefused = Self(1431)
    public static let offerNotMade = Self(1432)
    public static let answerRefused = Self(1433)
    public static let answerNotMade = Self(1434)
    public static let sessionReleased = Self(1435)
    public static let publishRefused = Self(1441)
    public static let publishFailed = Self(1442)
    public static let publishReplyDiffers = Self(1443)
    public static let answerUnusable = Self(1444)
    public static let unpublishRefused = Self(1445)
    public static let unpublishFailed = Self(1446)
    public static let growthRefused = Self(1447)
    public static let growthFailed = Self(1448)
    public static let receiverUnknown = Self(1452)
    public static let streamChangeRefused = Self(1453)
    public static let streamChangeFailed = Self(1454)
    public static let userMessageFailed = Self(1471)
    public static let publishReplyInvalid = Self(1472)
    public static let viewReplyInvalid = Self(1473)
    public static let errorReplyInvalid = Self(1474)
    public static let userMessageReplyInvalid = Self(1475)
    public static let offerInvalid = Self(1481)
    public static let errorInvalid = Self(1482)
    public static let streamMessageInvalid = Self(1483)
    public static let participantMessageInvalid = Self(1484)
    public static let qualityMessageInvalid = Self(1485)
    public static let userMessageInvalid = Self(1486)
    public static let downOfferUnusable = Self(1487)
    public static let foreignObject = Self(1901)
    public static let httpStatus = Self(1902)
    public static let httpResponseInvalid = Self(1903)
    public static let httpExchangeBroken = Self(1904)
    public static let shareDataInvalid = Self(1905)
    public static let shareGroupUnusable = Self(1906)
    public static let shareWithoutRoom = Self(1907)
    // The server's responses to a sign-in or a token.
    public static let unauthorized = Self(-11002)
    public static let serviceInvalid = Self(-11003)
    public static let forbidden = Self(-11004)
    public static let tokenInvalid = Self(-11005)
    // Our own codes have short names. The numbers are for the SDK's callbacks.
    public static let messageMalformed = Self(name: "protocol.malformed", number: 2001)
    public static let messageUnknown = Self(name: "protocol.unknown-message", number: 2002)
    public static let versionUnsupported = Self(name: "protocol.version", number: 2003)
    public static let outOfOrder = Self(name: "protocol.out-of-order", number: 2004)
    public static let notResumable = Self(name: "resume.unknown", number: 2006)
    public static let roomEnded = Self(name: "room.ended", number: 2007)
    public static let noSuchRoom = Self(name: "room.unknown", number: 2008)
    public static let noSuchParticipant = Self(name: "participant.unknown", number: 2009)
    public static let listenFailed = Self(name: "server.listen", number: 2011)
    public static let portInUse = Self(name: "server.port-in-use", number: 2012)
    public static let serverFull = Self(name: "server.full", number: 2013)
    public static let tooManyRequests = Self(name: "server.too-many-requests", number: 2014)
    public static let serverCertificate = Self(name: "server.certificate", number: 2015)
    public static let certificateUnreadable = Self(name: "server.certificate-unreadable", number: 2017)
    public static let userMessageTooLong = Self(name: "message.too-long", number: 2016)
    public static let streamRefused = Self(name: "stream.refused", number: 2005)
    public static let recordingUnavailable = Self(name: "recording.unavailable", number: 2022)
    public static let recordingFailed = Self(name: "recording.failed", number: 2023)
    public static let extensionMissing = Self(name: "extension.missing", number: 2019)
    public static let extensionFailed = Self(name: "extension.failed", number: 2020)
    public static let settingInvalid = Self(name: "setting.invalid", number: 2021)
    public static let media = Self(name: "media", number: 2031)
    public static let packetTooLong = Self(name: "media.packet-too-long", number: 2032)
    public static let audioTooFast = Self(name: "media.audio-too-fast", number: 2033)
    public static let turnUnauthorized = Self(name: "turn.unauthorized", number: 2041)
    public static let turnUnreachable = Self(name: "turn.unreachable", number: 2042)
    public static let turnCertificate = Self(name: "turn.certificate", number: 2043)
    public static let turnRefused = Self(name: "turn.refused", number: 2044)
    public static let turnMissing = Self(name: "turn.missing", number: 2045)

    /// The code with this name on the wire. An unknown name is kept.
    public init(wireName: String) {
        if let number = Int(wireName) {
            self = Self(number)
        } else {
            let known: [Self] = [
                .messageMalformed, .messageUnknown, .versionUnsupported, .outOfOrder, .notResumable, .roomEnded,
                .noSuchRoom,
                .noSuchParticipant, .listenFailed,
                .portInUse,
                .serverFull, .tooManyRequests, .serverCertificate, .certificateUnreadable, .userMessageTooLong,
                .streamRefused, .recordingUnavailable, .recordingFailed, .settingInvalid, .media,
                .packetTooLong, .audioTooFast,
                .turnUnauthorized, .turnUnreachable, .turnCertificate, .turnRefused, .turnMissing,
            ]
            self = known.first { $0.name == wireName } ?? Self(name: wireName, number: 2000)
        }
    }
}
