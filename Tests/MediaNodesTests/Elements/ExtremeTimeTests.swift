import Testing

@testable import MediaNodes

/// Timestamps that no clock gives, but an element may.
@Suite struct ExtremeTimeTests {
    @Test func `media of an element is moved to the present, unless its timestamps are ahead`() {
        #expect(ElementOutputs.shift(of: 0, to: 5) == 5)
        #expect(ElementOutputs.shift(of: 5, to: 0) == 0)
        #expect(ElementOutputs.shift(of: 1 << 63, to: 5) == 0)
        #expect(ElementOutputs.shift(of: .max, to: .max) == 0)
        #expect(ElementOutputs.shift(of: 0, to: .max) == .max)
    }
}
