/// Renumbers the frames of an epoch some of which are left out, so that their picture ids have no gap.
struct PictureCompactor: Sendable {
    private var compactor: SequenceCompactor
    private var newest: Int
    /// The number of ids, which wrap.
    private let turn: Int

    /// - Parameters:
    ///   - id: of the first frame that is left out
    ///   - isLong: whether ids have 15 bits instead of 7
    init(before id: UInt16, isLong: Bool) {
        turn = isLong ? 1 << 15 : 1 << 7
        newest = turn + Int(id)
        compactor = SequenceCompactor(start: newest)
    }

    /// The frame's new picture id. Nil if it was left out, or is too old.
    mutating func place(_ id: UInt16) -> UInt16? {
        compactor.place(unwrapped(id)).map { UInt16(truncatingIfNeeded: $0 & (turn - 1)) }
    }

    /// Leaves a frame out. Call it before `place` of the frame.
    mutating func leaveOut(_ id: UInt16) { _ = compactor.leaveOut(unwrapped(id)) }

    /// Whether the frame was left out.
    func hasLeftOut(_ id: UInt16) -> Bool { compactor.hasLeftOut(number(of: id)) }

    private mutating func unwrapped(_ id: UInt16) -> Int {
        let number = number(of: id)
        newest = max(newest, number)
        return number
    }

    private func number(of id: UInt16) -> Int {
        let step = (Int(id) - newest) & (turn - 1)
        return newest + (step < turn / 2 ? step : step - turn)
    }
}
