import Testing

@testable import MediaNodes
@testable import connectlive

@Suite struct LogMemoryTests {
    private func line(_ number: Int) -> GStreamerLog.Line {
        GStreamerLog.Line(isError: false, node: "node", source: "element", message: "line \(number)")
    }

    @Test func `a full log keeps the newest lines, and recognizes their duplicates`() {
        let memory = LogMemory()
        for number in 0..<500 { #expect(memory.isNew(line(number))) }
        #expect(!memory.isNew(line(499)) && !memory.isNew(line(300)))
        #expect(memory.lines(about: "node") == (492..<500).map(line))
        #expect(memory.isNew(line(0)), "it was forgotten")
    }
}
