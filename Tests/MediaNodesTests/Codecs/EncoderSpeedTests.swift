import MediaGraph
import MediaNodes
import Testing

@Suite struct EncoderSpeedTests {
    @Test(arguments: ["vp8enc", "x264enc", "openh264enc"])
    func `an encoder of a call encodes frames, and its speed is told`(factory: String) throws {
        let encoder = try #require(KnownEncoder.all.first { $0.factory == factory })
        #expect(!encoder.isHardware)
        let rate = try encoder.framesPerSecond(width: 64, height: 48, seconds: 60, frames: 2)
        #expect(try #require(rate) > 0)
    }

    @Test func `an encoder without its element throws the error of a graph`() throws {
        let encoder = try #require(
            KnownEncoder.all.first { $0.isHardware && !SystemEnvironment().hasElement($0.factory) })
        let error = #expect(throws: MediaError.self) {
            try encoder.framesPerSecond(width: 64, height: 48, seconds: 1)
        }
        #expect(error?.code == MediaError.Code.elementMissing)
    }

    @Test func `an encoder that refuses the size throws, and is not waited for`() throws {
        let encoder = KnownEncoder(codec: "vp8", factory: "vp8enc", isHardware: false)
        // Larger than a dimension of VP8.
        let error = #expect(throws: MediaError.self) {
            try encoder.framesPerSecond(width: 20_000, height: 16, seconds: 3600)
        }
        #expect(error?.code == MediaError.Code.elementFailed)
    }
}
