import Darkroom
import MediaTesting
import Testing

// One after the other: the kit measures descriptors, threads and memory of the whole process.
@Test func `the negative and the light meter conform to the requirements of their kinds`() async {
    let negative = await Conformance.test(Negative.init)
    #expect(negative.isPassed, "\(negative)")
    let lightMeter = await Conformance.test(LightMeter.init)
    #expect(lightMeter.isPassed, "\(lightMeter)")
}
