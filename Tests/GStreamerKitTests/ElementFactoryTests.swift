import GStreamerKit
import MediaGraph
import Testing

@Suite struct ElementFactoryTests {
    @Test("An element lists its pads and the types, ranges and defaults of its properties")
    func balance() throws {
        let balance = try #require(ElementFactory.describe("videobalance"))
        #expect(balance.longName == "Video balance")
        #expect(balance.entry.classification == "Filter/Effect/Video")
        #expect(balance.pads.map(\.name).sorted() == ["sink", "src"])
        let saturation = try #require(balance.property("saturation"))
        #expect(saturation.domain == .number(0...2))
        #expect(saturation.defaultValue == .number(1))
        #expect(saturation.isChangeable && !saturation.isChangeUnsaid)
        #expect(!saturation.summary.isEmpty)
        #expect(balance.property("name") == nil)
    }

    @Test("Choices, flags, text, fractions and formats are distinguished")
    func domains() throws {
        let overlay = try #require(ElementFactory.describe("textoverlay"))
        #expect(overlay.property("text")?.domain == .text)
        if case .choice(let words)? = overlay.property("halignment")?.domain {
            #expect(words.starts(with: ["left", "center", "right"]))
        } else {
            Issue.record("halignment is not a choice")
        }
        #expect(overlay.property("halignment")?.defaultValue == .text("center"))
        #expect(overlay.property("shaded-background")?.domain == .flag)
        #expect(ElementFactory.describe("capsfilter")?.property("caps")?.summary.contains("(a format such as") == true)
        #expect(
            ElementFactory.describe("v4l2src")?.property("extra-controls")?.summary.contains("(a structure such as")
                == true)
        #expect(ElementFactory.describe("videorate")?.property("max-rate")?.domain == .integer(1...Int(Int32.max)))
        let encoder = try #require(ElementFactory.describe("x264enc"))
        #expect(encoder.property("bitrate")?.isChangeUnsaid == false)
        #expect(encoder.property("bframes")?.isChangeUnsaid == true)
        #expect(encoder.entry.classification == "Codec/Encoder/Video")
        #expect(encoder.property("analyse")?.summary.contains("any of i4x4, ") == true)
    }

    @Test("Every installed element can be described")
    func everything() {
        let all = ElementFactory.all()
        #expect(all.count > 500)
        #expect(all.contains { $0.name == "x264enc" && $0.classification == "Codec/Encoder/Video" })
        // Elements of displays and hardware may open missing devices when they are created.
        let plain = all.filter { entry in
            ["Filter/", "Codec/", "Generic"].contains { entry.classification.contains($0) }
                && !entry.classification.contains("Hardware")
        }
        for entry in plain {
            #expect(ElementFactory.describe(entry.name) != nil, "\(entry.name)")
        }
    }

    @Test("The Debian package is known for every installed element, and for many others")
    func packages() {
        for entry in ElementFactory.all() where entry.name != "no-such" {
            #expect(!GStreamer.debianPackage(of: entry.name).contains(" "), "\(entry.name)")
        }
        for (factory, package) in [
            ("libcamerasrc", "gstreamer1.0-libcamera"), ("nicesrc", "gstreamer1.0-nice"),
            ("pipewiresrc", "gstreamer1.0-pipewire"), ("gtksink", "gstreamer1.0-gtk3"),
            ("glupload", "gstreamer1.0-gl"), ("avenc_aac", "gstreamer1.0-libav"),
            ("webrtcdsp", "gstreamer1.0-plugins-bad"), ("vaapih264enc", "gstreamer1.0-vaapi"),
            ("vah264enc", "gstreamer1.0-plugins-bad"), ("v4l2h264enc", "gstreamer1.0-plugins-good"),
            ("rtspclientsink", "gstreamer1.0-rtsp"), ("pulsesrc", "gstreamer1.0-plugins-good"),
            ("videoconvert", "gstreamer1.0-plugins-base"), ("tee", "libgstreamer1.0-0"),
            ("ximagesink", "gstreamer1.0-x"), ("wpesrc", "gstreamer1.0-wpe"),
        ] {
            #expect(GStreamer.debianPackage(of: factory) == package, "\(factory)")
        }
    }

    @Test("A missing element is reported with its package, a misspelt one with a suggestion")
    func lack() {
        #expect(
            ElementFactory.reasonForLack(of: "libcamerasrc")
                == "The GStreamer element libcamerasrc is not installed. On Debian, install gstreamer1.0-libcamera."
        )
        // A plugin registers it only with its driver, which no machine for tests has.
        #expect(
            ElementFactory.reasonForLack(of: "nvh264enc")
                == "The GStreamer element nvh264enc is unavailable on this machine, although its package "
                + "gstreamer1.0-plugins-bad is installed: its driver or device is missing.")
        #expect(
            ElementFactory.reasonForLack(of: "videobalanse")
                == "The GStreamer element videobalanse is not installed; did you mean videobalance?")
        #expect(
            ElementFactory.reasonForLack(of: "v4l2scr")
                == "The GStreamer element v4l2scr is not installed; did you mean v4l2src?")
        #expect(ElementFactory.isLacking("vah264enc") && !ElementFactory.isLacking("v4l2src"))
        #expect(ElementFactory.nearest(to: "x264enk") == "x264enc")
        #expect(ElementFactory.describe("videobalanse") == nil)
    }
}
