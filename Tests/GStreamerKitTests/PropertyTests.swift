import GStreamerKit
import MediaGraph
import Testing

@Suite struct PropertyTests {
    @Test("Every kind of property is set and read")
    func kinds() throws {
        let balance = try Element("videobalance")
        #expect(balance.trySet("saturation", 0.25) == nil)
        #expect(balance.value("saturation") == .number(0.25))
        #expect(balance.trySet("saturation", 1) == nil)
        #expect(balance.value("saturation") == .number(1))
        let queue = try Element("queue")
        #expect(queue.trySet("leaky", "downstream") == nil)
        #expect(queue.value("leaky") == .text("downstream"))
        #expect(queue.trySet("silent", true) == nil)
        #expect(queue.value("silent") == .flag(true))
        #expect(queue.trySet("max-size-bytes", .integer(4_000_000_000)) == nil)
        #expect(queue.value("max-size-bytes") == .integer(4_000_000_000))
        let filter = try Element("capsfilter")
        #expect(filter.trySet("caps", "video/x-raw,width=64") == nil)
        #expect(filter.value("caps") == .text("video/x-raw, width=(int)64"))
        let text = try Element("textoverlay")
        #expect(text.trySet("text", "12") == nil)
        #expect(text.value("text") == .text("12"))
        #expect(text.value("no-such") == nil)
    }

    @Test("Structures are set from text")
    func structures() throws {
        let camera = try Element("v4l2src")
        #expect(camera.trySet("extra-controls", "controls,brightness=120,white_balance_auto=0") == nil)
        #expect(camera.integer("brightness", ofStructure: "extra-controls") == 120)
        let reason = try #require(camera.trySet("extra-controls", "controls,brightness"))
        #expect(reason.contains("it must be a structure such as controls,brightness=120"))
        #expect(camera.integer("white_balance_auto", ofStructure: "extra-controls") == 0)
        #expect(camera.integer("brightness", ofStructure: "device") == 0)
    }

    @Test("An invalid value is refused with a message and changes nothing")
    func refused() throws {
        let balance = try Element("videobalance")
        #expect(
            balance.trySet("saturaton", 0.2) == "videobalance has no property saturaton; did you mean saturation?")
        #expect(balance.trySet("zzzzzz", 0.2) == "videobalance has no property zzzzzz")
        #expect(
            balance.trySet("saturation", 2.5)
                == "videobalance.saturation cannot be 2.5; it must be a number from 0 to 2")
        #expect(
            balance.trySet("saturation", "much")
                == "videobalance.saturation cannot be much; it must be a number from 0 to 2")
        #expect(balance.value("saturation") == .number(1))
        let queue = try Element("queue")
        #expect(
            queue.trySet("leaky", "sideways")
                == "queue.leaky cannot be sideways; it must be one of no, upstream, downstream")
        #expect(queue.trySet("silent", "maybe") == "queue.silent cannot be maybe; it must be true or false")
        #expect(queue.trySet("current-level-bytes", 3) == "queue.current-level-bytes is read-only")
        #expect(
            queue.trySet("max-size-buffers", -3)
                == "queue.max-size-buffers cannot be -3; it must be a whole number from 0 to 4294967295")
        let filter = try Element("capsfilter")
        #expect(filter.trySet("caps", "video/x-raw,,")?.contains("it must be a format such as") == true)
    }

    @Test("A number outside a property's range is refused")
    func outOfRange() throws {
        for value: SettingValue in [5, 2.5, -1] {
            let error = #expect(throws: MediaError.self) { _ = try Element("videobalance", ["saturation": value]) }
            #expect(error?.code == "element.property")
            #expect(error?.message.contains("saturation cannot be \(value); it must be") == true)
        }
        let balance = try Element("videobalance", ["saturation": 2])
        #expect(throws: MediaError.self) { try balance.set("saturation", 3) }
        #expect(balance.value("saturation") == 2.0)
    }

    @Test("A property that can only change before the start is refused afterwards")
    func late() throws {
        let encoder = try Element("opusenc")
        #expect(encoder.trySet("audio-type", "voice") == nil)
        let parser = try Element("x264enc")
        #expect(parser.trySet("bframes", 2) == nil)
        parser.setState(.paused)
        #expect(parser.state == .paused)
        defer { parser.close() }
        #expect(parser.trySet("bitrate", 900) == nil)
    }

    @Test("An element lists its pad templates and its pads")
    func pads() throws {
        let mixer = try Element("compositor")
        let templates = mixer.padTemplates
        #expect(templates.contains { $0.name == "sink_%u" && $0.direction == .sink && $0.presence == .onRequest })
        #expect(templates.contains { $0.name == "src" && $0.direction == .source && $0.presence == .always })
        #expect(templates.allSatisfy { $0.caps.summary == "video/x-raw" })
        #expect(mixer.requestPad("sink_%u", name: "sink_7")?.name == "sink_7")
        #expect(mixer.pads.map(\.name).sorted() == ["sink_7", "src"])
        #expect(mixer.requestPad("absent_%u", name: nil) == nil)
        let pad = try #require(mixer.pad("sink_7"))
        mixer.release(pad)
        #expect(mixer.pad("sink_7") == nil)
    }
}
