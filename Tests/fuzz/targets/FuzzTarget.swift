/// A parser of hostile bytes, as a function of those bytes. The run ends when it traps, hangs or breaks a promise.
package struct FuzzTarget: Sendable {
    package let name: String
    /// Longest input worth trying, in bytes.
    package let maximumLength: Int
    package let run: @Sendable ([UInt8]) -> Void

    package static let all: [FuzzTarget] = [
        FuzzTarget(name: "rtp", maximumLength: 1500, run: fuzzRTP),
        FuzzTarget(name: "rtcp", maximumLength: 1500, run: fuzzRTCP),
        FuzzTarget(name: "stun", maximumLength: 1500, run: fuzzSTUN),
        FuzzTarget(name: "ice", maximumLength: 2048, run: fuzzICE),
        FuzzTarget(name: "vp8", maximumLength: 64, run: fuzzVP8),
        FuzzTarget(name: "vp9", maximumLength: 128, run: fuzzVP9),
        FuzzTarget(name: "h264", maximumLength: 256, run: fuzzH264),
        FuzzTarget(name: "aac", maximumLength: 64, run: fuzzAAC),
        FuzzTarget(name: "session", maximumLength: 4096, run: fuzzSession),
        FuzzTarget(name: "sdp", maximumLength: 8192, run: fuzzSessionDescription),
        FuzzTarget(name: "candidate", maximumLength: 600, run: fuzzCandidate),
        FuzzTarget(name: "signalling", maximumLength: 4096, run: fuzzSignalling),
        FuzzTarget(name: "frame-socket", maximumLength: 4096, run: fuzzFrameSocket),
        FuzzTarget(name: "graph-file", maximumLength: 4096, run: fuzzGraphFile),
        FuzzTarget(name: "usb-descriptors", maximumLength: 2048, run: fuzzUSBDescriptors),
        FuzzTarget(name: "camera-fixture", maximumLength: 4096, run: fuzzCameraFixture),
    ]

    package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}
