import MediaGraph
import MediaNodes
import Testing

@Suite struct ExposedSettingTests {
    @Test("A password that a node around elements exposes stays secret")
    func password() throws {
        let node = ElementsNode(
            "own-camera", "A camera", elements: [.init("rtspsrc", as: "source")],
            exposing: ["user-pw": "source.user-pw"], gives: .rawVideo())
        let kind = try #require(try NodeRegistry.builtIn.adding(.elements(node)).kind(named: "own-camera"))
        #expect(kind.setting("user-pw")?.isSecret == true)
    }

    @Test("A place that an exposed setting names wrongly is repeated as it was written")
    func wrongPlace() throws {
        let node = ElementsNode(
            "own-camera", "A camera", elements: [.init("rtspsrc", as: "source")], exposing: ["speed": "source.nope"],
            gives: .rawVideo())
        let error = #expect(throws: MediaError.self) { try NodeRegistry.builtIn.adding(.elements(node)) }
        #expect(error?.message.contains("exposes source.nope") == true)
    }
}
