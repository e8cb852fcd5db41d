import MediaGraph
import Testing

@Suite struct FirstNonNilTests {
    @Test func `the closure is called once for each element, so a value may vanish afterwards`() {
        var values: [Int?] = [nil, 7, 8]
        var calls: [Int] = []
        let first = values.indices.firstNonNil { index in
            calls.append(index)
            defer { values[index] = nil }
            return values[index]
        }
        #expect(first == 7 && calls == [0, 1])
        #expect([1, 2].firstNonNil { _ in String?.none } == nil)
    }
}
