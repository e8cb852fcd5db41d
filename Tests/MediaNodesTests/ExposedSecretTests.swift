import MediaGraph
import MediaNodes
import Testing

@Suite struct ExposedSecretTests {
    @Test("A password that a node around elements exposes stays secret")
    func password() throws {
        let node = ElementsNode(
            "own-camera", "A camera", elements: [.init("rtspsrc", as: "source")],
            exposing: ["user-pw": "source.user-pw"], gives: .rawVideo())
        let kind = try #require(try NodeRegistry.builtIn.adding(.elements(node)).kind(named: "own-camera"))
        #expect(kind.setting("user-pw")?.isSecret == true)
    }
}
