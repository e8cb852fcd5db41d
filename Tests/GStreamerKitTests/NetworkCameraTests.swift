import MediaGraph
import Testing

@testable import GStreamerKit

@Suite struct NetworkCameraTests {
    @Test("An address is parsed, and printed without its password")
    func address() throws {
        let full = try #require(RTSPAddress("rtsp://admin:se%20cret@10.0.0.7:8554/stream1?profile=2"))
        #expect(full.user == "admin" && full.password == "se cret")
        #expect(full.host == "10.0.0.7" && full.port == 8554 && full.path == "/stream1?profile=2")
        #expect("\(full)" == "rtsp://10.0.0.7:8554/stream1?profile=2")
        #expect(RTSPAddress("rtsp://user:p@ss@camera/")?.password == "p@ss")
        #expect(RTSPAddress("RTSP://camera")?.port == 554)
        let six = try #require(RTSPAddress("rtsp://[fe80::1]:554/live"))
        #expect(six.host == "fe80::1" && six.url == "rtsp://[fe80::1]/live")
        let encrypted = try #require(RTSPAddress("rtsps://camera/live"))
        #expect(encrypted.isEncrypted && encrypted.url == "rtsps://camera:322/live")
    }

    @Test(
        "An invalid address of a camera is refused",
        arguments: [
            "", "http://camera/", "rtsp://", "rtsp:///path", "rtsp://camera:0/", "rtsp://camera:x/", "rtsp://a:1:2/",
            "rtsp://cam era/", "rtsp://[fe80::1/", "rtspx://camera/",
        ])
    func badAddress(_ text: String) {
        #expect(RTSPAddress(text) == nil)
    }

    @Test("A description is read as cameras write it")
    func description() throws {
        let camera = NetworkCamera(
            sessionDescription: """
                v=0\r
                o=- 0 0 IN IP4 127.0.0.1\r
                a=control:*\r
                m=video 0 RTP/AVP 96\r
                a=rtpmap:96 H264/90000\r
                a=fmtp:96 profile-level-id=4D0029; packetization-mode=1;sprop-parameter-sets=Z00AKZpmA8ARPyzUBAQF,aO48gA==\r
                a=x-dimensions:1920,1080\r
                a=framerate:25.0\r
                m=application 0 RTP/AVP 107\r
                a=rtpmap:107 vnd.onvif.metadata/90000\r
                m=audio 0 RTP/AVP 8\r
                """)
        let video = try #require(camera.video)
        #expect(video.payloadFormat == "H264" && video.width == 1920 && video.height == 1080)
        #expect(video.framesPerSecond == 25)
        let audio = try #require(camera.audio)
        #expect(audio.payloadFormat == "PCMA" && audio.clockRate == 8000 && audio.channels == 1)
        #expect(camera.count == 2)
        #expect(video.line == 0 && audio.line == 2, "m-lines of other media count")
    }

    @Test func `AAC has the sample rate and channels of its configuration, whatever its clock is`() {
        func audio(_ map: String, _ parameters: String) -> [Int?] {
            let camera = NetworkCamera(
                sessionDescription: "v=0\r\nm=audio 0 RTP/AVP 96\r\na=rtpmap:96 \(map)\r\na=fmtp:96 \(parameters)\r\n")
            return [camera.audio?.clockRate, camera.audio?.channels]
        }
        #expect(audio("MP4A-LATM/90000", "cpresent=0;config=400026203fc0") == [24_000, 2])
        #expect(audio("MP4A-LATM/90000", "cpresent=1") == [nil, 1])
        #expect(audio("MP4A-LATM/16000", "cpresent=1") == [16_000, 1])
        #expect(audio("MPEG4-GENERIC/90000", "mode=AAC-hbr;config=1210") == [44_100, 2])
        // SBR, and an explicit rate.
        #expect(audio("MPEG4-GENERIC/24000", "mode=AAC-hbr;config=2B0988") == [48_000, 1])
        #expect(audio("MPEG4-GENERIC/8000/2", "mode=AAC-hbr;config=17805DC010") == [48_000, 2])
        for broken in ["", "1", "xyz", "12", "ffff", "1278"] {
            #expect(audio("MPEG4-GENERIC/32000/2", "mode=AAC-hbr;config=\(broken)") == [32_000, 2], "\(broken)")
        }
    }

    @Test func `an impossible rate of frames is none`() {
        func rate(_ text: String) -> Double? {
            NetworkCamera(
                sessionDescription: "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=framerate:\(text)\r\n"
            ).first?.framesPerSecond
        }
        #expect(rate("0.5") == 0.5)
        for text in ["1e-300", "0.01", "0", "-1", "nan", "inf", "1000"] { #expect(rate(text) == nil, "\(text)") }
    }

    @Test func `a range without a finite end is that of a live stream`() {
        func length(_ range: String) -> Double? {
            NetworkCamera(
                sessionDescription: "v=0\r\na=range:\(range)\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
            ).first?.length
        }
        #expect(length("npt=0-12.5") == 12.5)
        for range in ["npt=0-", "npt=now-", "npt=0-inf", "npt=0-1e999", "npt=0-nan"] { #expect(length(range) == nil) }
    }

    @Test("The parameter sets tell the size, and a range the length of a stream")
    func parameterSets() throws {
        // Those of x264 for 320x240.
        let camera = NetworkCamera(
            sessionDescription: """
                v=0\r
                a=range:npt=0-12.5\r
                m=video 0 RTP/AVP 96\r
                a=rtpmap:96 H264/90000\r
                a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LADdoFB+wFqDAwNSgAAAMACAAAAwD0eKFV,aM48gA==;x=1\r
                m=audio 0 RTP/AVP 0\r
                a=range:npt=now-\r

                """)
        #expect(camera.video?.width == 320 && camera.video?.height == 240 && camera.video?.length == 12.5)
        #expect(camera.audio?.length == nil)
        let broken = NetworkCamera(
            sessionDescription:
                "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:96 sprop-parameter-sets=Z0LA,!!\n")
        #expect(broken.video?.width == nil)
    }

    @Test(
        "A malformed description gives its readable parts",
        arguments: [
            "", "m=", "m=video", "m=video 0 RTP/AVP", "m=video 0 RTP/AVP 96\na=rtpmap:",
            "m=video 0 RTP/AVP 96\na=rtpmap:97 H264/90000",
            "m=video x y z\n", "m=audio 0 RTP/AVP 99999999999999999999\n", "m=video 0 RTP/AVP 96\na=rtpmap:96 /",
        ])
    func brokenDescription(_ text: String) {
        #expect(NetworkCamera(sessionDescription: text).isEmpty)
    }
}

extension NetworkCamera {
    var video: NetworkCameraStream? { first { $0.isVideo } }
    var audio: NetworkCameraStream? { first { !$0.isVideo } }
}
