import MediaGraph

/// What elements take for one frame, for the latency that a plan expects.
enum ElementCost {
    /// Nanoseconds for one pixel, measured on one core of the build machine (see docs/architecture.md).
    private static let nanosecondsPerPixel: [String: Double] = [
        "vp8enc": 7.0, "x264enc": 6.5, "vp8dec": 1.2, "avdec_h264": 1.5, "openh264dec": 2.0,
    ]

    static func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double {
        let pixels = Double((format.width ?? 640) * (format.height ?? 480))
        return (nanosecondsPerPixel[element.factory] ?? 0) * pixels / 1e9
    }
}
