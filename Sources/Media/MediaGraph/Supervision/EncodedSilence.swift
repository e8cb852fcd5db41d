/// Silence as an encoded frame of audio, to be repeated while a source is away. Nothing is encoded.
package struct EncodedSilence: Sendable, Hashable {
    package let frame: [UInt8]
    /// The length of the frame, in nanoseconds.
    package let duration: UInt64

    /// Nil for an encoding whose silence is not known here, and for an impossible rate or number of channels. AAC needs a
    /// standard sample rate and one or two channels, and is framed as ADTS.
    package init?(_ format: MediaFormat) {
        let channels = format.channels ?? 1
        switch format.encoding {
        case "opus":
            // RFC 6716, 3.1 and 4.3: 20 ms of CELT at the full band, whose first symbol is the flag of silence.
            self.init([31 << 3 | (channels > 1 ? 4 : 0), 0xff, 0xfe], lasting: 20_000_000)
        case "pcmu", "pcma":
            // ITU-T G.711: the smallest positive value, for 20 ms.
            let (rate, zero): (Int, UInt8) = (format.sampleRate ?? 8000, format.encoding == "pcmu" ? 0xff : 0xd5)
            guard (50...192_000).contains(rate), (1...8).contains(channels) else { return nil }
            let samples = rate / 50
            self.init(
                Array(repeating: zero, count: samples * channels),
                lasting: UInt64(samples) * 1_000_000_000 / UInt64(rate))
        case "aac":
            let rate = format.sampleRate ?? 48_000
            guard let index = AACConfiguration.rates.firstIndex(of: rate), (1...2).contains(channels) else {
                return nil
            }
            // AAC-LC of MPEG-4
            self.init(version: 0, profile: 1, rateIndex: index, channels: channels)
        default: return nil
        }
    }

    /// Silence that continues a stream of AAC: a frame of it as ADTS tells the configuration (ISO/IEC 13818-7, 6.2). Nil for
    /// other bytes, and unless it has one or two channels.
    package init?(adts frame: [UInt8]) {
        guard frame.count >= 7, frame[0] == 0xff, frame[1] & 0xf6 == 0xf0 else { return nil }
        let (index, channels) = (Int(frame[2] >> 2 & 0xf), Int(frame[2] & 1) << 2 | Int(frame[3] >> 6))
        guard index < AACConfiguration.rates.count, (1...2).contains(channels) else { return nil }
        self.init(
            version: Int(frame[1] >> 3 & 1), profile: Int(frame[2] >> 6), rateIndex: index, channels: channels)
    }

    private init(_ frame: [UInt8], lasting duration: UInt64) { (self.frame, self.duration) = (frame, duration) }

    /// AAC. The block is the same in all profiles.
    private init(version: Int, profile: Int, rateIndex: Int, channels: Int) {
        let block = Self.emptyBlock(channels)
        frame = Self.adts(block, version: version, profile: profile, rateIndex: rateIndex, channels)
        duration = 1024 * 1_000_000_000 / UInt64(AACConfiguration.rates[rateIndex])
    }

    /// A raw data block of AAC-LC without any spectral data (ISO/IEC 14496-3, 4.4.2).
    private static func emptyBlock(_ channels: Int) -> [UInt8] {
        var writer = BitWriter()
        // The element and its tag. The two channels of a pair have no window in common.
        writer.append(channels == 2 ? 1 : 0, bits: 3)
        writer.append(0, bits: 4)
        if channels == 2 { writer.append(false) }
        for _ in 0..<channels {
            // The gain; one long window of the first shape with no bands and no prediction; no pulses, noise shaping or
            // gain control.
            writer.append(0, bits: 8)
            writer.append(0, bits: 11)
            writer.append(0, bits: 3)
        }
        writer.append(7, bits: 3)
        writer.align(with: false)
        return writer.whole
    }

    /// ISO/IEC 13818-7, 6.2
    private static func adts(
        _ block: [UInt8], version: Int, profile: Int, rateIndex: Int, _ channels: Int
    ) -> [UInt8] {
        var writer = BitWriter()
        writer.append(0xfff1 | version << 3, bits: 16)
        writer.append(profile, bits: 2)
        writer.append(rateIndex, bits: 4)
        writer.append(0, bits: 1)
        writer.append(channels, bits: 3)
        writer.append(0, bits: 4)
        writer.append(block.count + 7, bits: 13)
        writer.append(0x7ff, bits: 11)
        writer.append(0, bits: 2)
        return writer.whole + block
    }
}
