import GStreamerKit
public import MediaGraph

/// Changes the pixel format of frames.
enum ConvertNode: NodeType {
    /// The formats that GStreamer 1.22 converts to, the usual ones first.
    private static let pixelFormats = """
        I420 NV12 YV12 NV21 YUY2 UYVY YVYU VYUY RGB BGR RGBA BGRA ARGB ABGR RGBx BGRx xRGB xBGR GRAY8 AYUV VUYA \
        Y444 Y42B Y41B A420 NV16 NV24 NV61 P010_10LE I420_10LE I422_10LE Y444_10LE GBR GBRA RGBP BGRP RGB16 BGR16 \
        RGB15 BGR15 RGB8P YVU9 YUV9 IYU1 IYU2 v308 v210 v216 r210 UYVP Y210 Y410 AV12 GRAY16_LE GRAY16_BE GRAY10_LE32 \
        A420_10LE A422_10LE A444_10LE GBR_10LE GBRA_10LE I420_12LE I422_12LE Y444_12LE GBR_12LE GBRA_12LE Y212_LE \
        Y412_LE P012_LE P016_LE Y444_16LE RGB10A2_LE BGR10A2_LE ARGB64 AYUV64 ARGB64_LE RGBA64_LE BGRA64_LE ABGR64_LE \
        P010_10BE I420_10BE I422_10BE Y444_10BE A420_10BE A422_10BE A444_10BE GBR_10BE GBRA_10BE I420_12BE I422_12BE \
        Y444_12BE GBR_12BE GBRA_12BE Y212_BE Y412_BE P012_BE P016_BE Y444_16BE ARGB64_BE RGBA64_BE BGRA64_BE \
        ABGR64_BE NV16_10LE32 NV12_10LE32 NV12_10LE40 NV12_10BE_8L128 NV12_8L128 NV12_64Z32 NV12_4L4 NV12_32L32 \
        NV12_16L32S
        """.split(separator: " ").map(String.init)

    static let kind = NodeKind(
        "convert", .processor, "Changes the pixel format",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract(
                "pixel-format", .choice(pixelFormats), default: "I420", "GStreamer's name of the output format")
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var format = request.input("in") ?? .rawVideo()
        let given = format.encoding
        format.encoding = request.text("pixel-format")
        var plan = NodePlan(request.node)
        plan.add("videoconvert", as: "convert")
        plan.addFilter("video/x-raw,format=\(format.encoding)", as: "format")
        plan.link("convert", "format")
        plan.inputs["in"] = ElementPad("convert")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = format
        plan.notes.append("frames are converted from \(given) to \(format.encoding)")
        return plan
    }
}

extension Node {
    /// Changes the pixel format. The planner inserts it where a node does not accept a format.
    public static func convert(_ name: String = "convert", pixelFormat: String? = nil) -> Node {
        Node(ConvertNode.kind, name, ["pixel-format": pixelFormat])
    }
}
