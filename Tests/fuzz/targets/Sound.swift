internal import MediaNodes

/// The configuration of any bytes is one that is played, and silence that continues a frame continues itself.
@Sendable func fuzzAAC(_ bytes: [UInt8]) {
    for isMultiplexed in [false, true] {
        guard let found = AACConfiguration(bytes, isMultiplexed: isMultiplexed) else { continue }
        precondition((7350...96_000).contains(found.sampleRate) && (1...2).contains(found.channels))
    }
    guard let silence = EncodedSilence(adts: bytes) else { return }
    precondition(silence.duration > 0 && EncodedSilence(adts: silence.frame) == silence)
}
