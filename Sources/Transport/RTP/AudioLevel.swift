/// How loud the audio of a packet is, as its sender claims in a header extension (RFC 6464).
public struct AudioLevel: Sendable, Hashable {
    /// The level of silence.
    public static let quietest: UInt8 = 127

    /// Whether the sender believes that the audio is voice.
    public var isVoice: Bool
    /// The negated root mean square in dBov: 0 is the loudest, 127 is silence.
    public let negativeDecibels: UInt8

    /// - Parameter negativeDecibels: more than 127 is 127.
    public init(negativeDecibels: UInt8, isVoice: Bool = false) {
        self.negativeDecibels = min(negativeDecibels, Self.quietest)
        self.isVoice = isVoice
    }

    /// The level of audio with this root mean square, in decibels below full scale.
    public init(decibels: Double, isVoice: Bool = false) {
        let level = (-decibels).rounded()
        self.init(negativeDecibels: level > 0 ? UInt8(min(level, Double(Self.quietest))) : 0, isVoice: isVoice)
    }

    /// The length of the value in bytes, in the one-byte form and in the two-byte form.
    static let length = 1

    var byte: UInt8 { (isVoice ? 0x80 : 0) | negativeDecibels }

    init(byte: UInt8) {
        isVoice = byte & 0x80 != 0
        negativeDecibels = byte & 0x7f
    }
}
