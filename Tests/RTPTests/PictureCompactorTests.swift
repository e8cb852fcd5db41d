import Testing
import TestSupport

@testable import RTP

@Suite struct PictureCompactorTests {
    @Test(arguments: [true, false])
    func `picture ids have no gap where frames were left out, across their wrap`(isLong: Bool) {
        let turn = isLong ? 1 << 15 : 1 << 7
        var pictures = PictureCompactor(before: UInt16(turn - 3), isLong: isLong)
        var expected = turn - 3
        for number in (turn - 3)..<(turn + 1000) {
            let id = UInt16(number % turn)
            if number % 4 != 0 {
                // Each packet of a frame.
                for _ in 0..<3 { pictures.leaveOut(id) }
                #expect(pictures.place(id) == nil)
                #expect(pictures.hasLeftOut(id))
                #expect(!pictures.hasLeftOut(UInt16((number + 1) % turn)))
            } else {
                for _ in 0..<3 { #expect(pictures.place(id) == UInt16(expected % turn)) }
                expected += 1
            }
        }
    }

    @Test func `a late packet keeps the picture id of its frame`() {
        var pictures = PictureCompactor(before: 100, isLong: true)
        pictures.leaveOut(100)
        #expect(pictures.place(101) == 100)
        pictures.leaveOut(102)
        #expect(pictures.place(103) == 101)
        #expect(pictures.place(99) == 99)
        #expect(pictures.place(101) == 100)
        #expect(pictures.place(100) == nil)
    }
}
