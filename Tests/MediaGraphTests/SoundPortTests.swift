import MediaGraph
import Testing

struct SoundPortTests {
    @Test(arguments: [
        ("analog-output-headphones", SoundPort.Kind.headphones), ("[Out] Headphones", .headphones),
        ("analog-output-speaker", .speaker), ("[Out] Speaker", .speaker), ("analog-output-lineout", .line),
        ("analog-input-linein", .line), ("hdmi-output-0", .display), ("analog-input-headset-mic", .headset),
        ("analog-input-headphone-mic", .headset), ("analog-input-internal-mic", .internalMicrophone),
        ("analog-input-front-mic", .microphone), ("[In] Mic1", .microphone), ("output-earpiece", .earpiece),
        ("analog-output", .unknown), ("", .unknown),
    ])
    func `the name of a port tells its kind`(_ name: String, _ kind: SoundPort.Kind) {
        #expect(SoundPort.Kind(name: name) == kind)
    }

    @Test func `nobody unplugs a built-in speaker`() {
        #expect(!SoundPort("speaker", .speaker, isUnplugged: true).isUnplugged)
        #expect(SoundPort("headphones", .headphones, isUnplugged: true).isUnplugged)
    }
}
