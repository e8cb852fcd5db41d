import DesktopRegion
import MediaAuthoring
import Testing

@Test func `it is a capturer with one output of pictures`() {
    #expect(desktopRegion.takes == nil)
    #expect(desktopRegion.gives?.kind == .rawVideo)
    #expect(desktopRegion.exposed.keys.contains("text"))
}
