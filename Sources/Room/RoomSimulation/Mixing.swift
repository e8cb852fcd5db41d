extension Span<UInt8> {
    /// A number that depends on each byte, its place and `seed`. Not secure.
    func mixed(from seed: UInt64) -> UInt64 {
        var sum = seed ^ 0xcbf2_9ce4_8422_2325 ^ UInt64(count)
        var place = 0
        while place + 8 <= count {
            var word: UInt64 = 0
            for offset in 0..<8 { word |= UInt64(self[place + offset]) << UInt64(8 * offset) }
            sum = sum.mixed(with: word)
            place += 8
        }
        while place < count {
            sum = sum.mixed(with: UInt64(self[place]))
            place += 1
        }
        return sum
    }
}

extension UInt64 {
    /// FNV-1a's step for a whole word. The shift carries the high bits down, which the product never does.
    func mixed(with word: UInt64) -> UInt64 {
        let product = (self ^ word) &* 0x0100_0000_01b3
        return product ^ product >> 32
    }
}
