import MediaGraph

/// The elements that decode, by encoding, in the order in which they are preferred: hardware first. The last of each is
/// in every Debian.
enum DecoderTable {
    static func video(_ encoding: String) -> [String] {
        switch encoding {
        case "vp8": ["nvvp8dec", "vavp8dec", "v4l2slvp8dec", "v4l2vp8dec", "vp8dec"]
        case "vp9": ["nvvp9dec", "vavp9dec", "v4l2slvp9dec", "v4l2vp9dec", "vp9dec"]
        case "h264":
            [
                "nvh264dec", "mppvideodec", "vah264dec", "v4l2slh264dec", "v4l2h264dec", "avdec_h264", "openh264dec",
            ]
        case "h265": ["nvh265dec", "vah265dec", "v4l2slh265dec", "v4l2h265dec", "avdec_h265", "libde265dec"]
        case "av1": ["nvav1dec", "vaav1dec", "dav1ddec", "av1dec"]
        case "mjpeg": ["nvjpegdec", "vajpegdec", "v4l2jpegdec", "jpegdec"]
        default: []
        }
    }

    static func audio(_ encoding: String) -> [String] {
        switch encoding {
        case "opus": ["opusdec"]
        case "aac": ["avdec_aac", "faad"]
        case "pcmu": ["mulawdec"]
        case "pcma": ["alawdec"]
        case "mp3": ["mpg123audiodec", "avdec_mp3"]
        case "flac": ["flacdec"]
        case "vorbis": ["vorbisdec"]
        default: []
        }
    }

    /// Settings of an element beside GStreamer's own.
    static func properties(_ factory: String) -> [String: SettingValue] {
        switch factory {
        case "vp8dec", "vp9dec": ["threads": 1]
        // Frame threads would hold frames back; one thread decodes what conferences send fast enough.
        case "avdec_h264", "avdec_h265": ["max-threads": 1, "output-corrupt": false]
        case "opusdec": ["use-inband-fec": true, "plc": true]
        default: [:]
        }
    }

    /// What brings an encoding into the form that its decoders take; nil where it comes in that form.
    static func parser(_ encoding: String) -> String? {
        switch encoding {
        case "h265": "h265parse"
        case "av1": "av1parse"
        case "aac": "aacparse"
        case "mp3": "mpegaudioparse"
        case "flac": "flacparse"
        default: nil
        }
    }
}
