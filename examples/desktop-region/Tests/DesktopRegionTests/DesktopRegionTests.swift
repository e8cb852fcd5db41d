import DesktopRegion
import MediaGraph
import Testing

@Test func `it is a capturer with one output of pictures`() {
    let kind = CustomNode.elements(desktopRegion).kind
    #expect(kind.group == .capturer)
    #expect(kind.outputs.map(\.name) == ["video"])
    #expect(desktopRegion.exposed.keys.contains("text"))
}
