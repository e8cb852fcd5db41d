/// The audio that AAC decodes to, as its `config` in a session description states it.
package struct AACConfiguration: Sendable, Hashable {
    /// In Hz.
    package let sampleRate: Int
    package let channels: Int

    /// ISO/IEC 14496-3, table 1.18
    static let rates = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
    ]

    /// Parses an AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1). Nil for a malformed one and for more than two channels.
    ///
    /// - Parameter isMultiplexed: whether it is in a StreamMuxConfig, as of LATM (1.7.3.2).
    package init?(_ config: [UInt8], isMultiplexed: Bool) {
        var reader = BitReader(plain: config)
        // The version of the multiplex; then its framing, subframes, programs and layers.
        if isMultiplexed, reader.flag() || reader.bits(14) & 0x7f != 0 { return nil }
        let type = reader.objectType()
        let core = reader.sampleRate()
        let channels = reader.bits(4)
        // SBR doubles the rate of the core, and parametric stereo its channels.
        let rate = [5, 29].contains(type) ? reader.sampleRate() : core
        guard !reader.isBeyond, (7350...96_000).contains(rate), (1...2).contains(channels) else { return nil }
        (sampleRate, self.channels) = (rate, type == 29 ? 2 : channels)
    }
}

extension BitReader {
    fileprivate mutating func objectType() -> Int {
        let type = bits(5)
        return type == 31 ? 32 + bits(6) : type
    }

    /// 0 for a reserved index.
    fileprivate mutating func sampleRate() -> Int {
        let index = bits(4)
        if index == 15 { return bits(24) }
        return index < AACConfiguration.rates.count ? AACConfiguration.rates[index] : 0
    }
}
