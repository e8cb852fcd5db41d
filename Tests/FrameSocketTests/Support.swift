@testable import FrameSocket

let small = FrameFormat(.i420, width: 64, height: 48)

/// A receiver that has accepted a feeder with four slots for one frame each.
func greeted(_ format: FrameFormat = small, slots: UInt32 = 4, slotBytes: UInt32? = nil) throws -> FrameIntake {
    var intake = FrameIntake(wanted: format, now: second)
    let bytes = slotBytes ?? UInt32(format.bytesPerFrame)
    let hello = FeedHello(format: format, slots: slots, slotBytes: bytes, name: "test")
    _ = try intake.receive(FrameMessage.hello(hello).bytes, memory: [Int(slots) * Int(bytes)], now: second)
    return intake
}

let second: UInt64 = 1_000_000_000

/// The code of a refusal.
func refusal(_ body: () throws -> Void) -> String? {
    do {
        try body()
        return nil
    } catch {
        return (error as? FrameSocketError)?.code ?? "\(error)"
    }
}
