import RTP
import TestSupport
import Testing

@testable import ServerCore

/// Levels in negated dBov over time, with a packet every 20 ms.
private struct Sound {
    var loudness = Loudness()
    private(set) var steady: [Int] = []
    private(set) var speaking: [Int] = []
    private(set) var time = 0

    /// - Parameters:
    ///   - milliseconds: multiples of 20
    ///   - level: nil for no packets
    mutating func last(_ milliseconds: Int, _ level: (Int) -> UInt8?) {
        for _ in 0..<milliseconds / 20 {
            if let level = level(time) { _ = loudness.add(AudioLevel(negativeDecibels: level)) }
            time += 20
            guard time % 100 == 0 else { continue }
            loudness.endInterval()
            if loudness.isSteady { steady.append(time) }
            if loudness.isSpeaking { speaking.append(time) }
        }
    }

    mutating func last(_ milliseconds: Int, at level: UInt8?) { last(milliseconds) { _ in level } }
}

@Suite struct LoudnessTests {
    @Test func `a client that speaks is steady after 400 ms, and not any longer when it falls silent`() {
        var sound = Sound()
        sound.last(1000, at: 70)
        #expect(sound.loudness.isIdle && sound.loudness.score == 0)
        sound.last(1000, at: 25)
        #expect(sound.speaking == Array(stride(from: 1100, through: 2000, by: 100)))
        #expect(sound.steady == Array(stride(from: 1400, through: 2000, by: 100)))
        // Six intervals of 30 dB, each of which makes up for 39 % of the rest.
        #expect(sound.loudness.score > 29 && sound.loudness.score <= 30)
        sound.last(1000, at: 70)
        #expect(sound.steady.last == 2200 && sound.speaking.last == 2000)
        #expect((15...20).contains(sound.loudness.score))
        sound.last(10_000, at: 70)
        #expect(sound.loudness.isIdle)
    }

    @Test func `a cough, wherever it begins, is not steady`() {
        for start in stride(from: 0, to: 100, by: 20) {
            var sound = Sound()
            sound.last(1000 + start, at: 70)
            sound.last(260, at: 10)
            sound.last(2000, at: 70)
            #expect(sound.steady.isEmpty && !sound.speaking.isEmpty)
        }
    }

    @Test func `words with pauses between them are steady`() {
        var sound = Sound()
        sound.last(6000) { $0 % 500 < 400 ? 25 : 65 }
        #expect(sound.steady.filter { $0 > 2000 }.count == 40)
    }

    @Test func `the noise of a fan is silence, and a voice above it is not`() {
        var sound = Sound()
        sound.last(5000, at: 40)
        #expect(sound.speaking.isEmpty && sound.loudness.score == 0)
        sound.last(1000, at: 20)
        #expect(sound.steady.first == 5400)
        #expect((15...20).contains(sound.loudness.score))
    }

    @Test func `whoever claims to be loud all the time is silent after three seconds`() {
        var sound = Sound()
        sound.last(60_000, at: 0)
        #expect(sound.steady.isEmpty && sound.loudness.score == 0)
        // A moment of silence earns three seconds.
        sound.last(100, at: 127)
        sound.last(60_000, at: 0)
        #expect((60_400...63_200).contains(sound.steady.last ?? 0))
    }

    @Test func `a pattern of levels that does not change is silent, too`() {
        for quiet in 1...4 {
            var sound = Sound()
            sound.last(60_000) { $0 % 100 < 20 * quiet ? 127 : 0 }
            #expect(sound.steady.isEmpty && sound.speaking.isEmpty && sound.loudness.score == 0)
        }
    }

    @Test func `a voice counts for no more than 30 dB`() {
        var sound = Sound()
        sound.last(1000, at: 127)
        sound.last(2000, at: 0)
        #expect(sound.loudness.score <= 30)
    }

    @Test func `packets that are lost are no words, and change nothing of the noise`() {
        var sound = Sound()
        sound.last(4000, at: 40)
        sound.last(4000, at: nil)
        #expect(sound.loudness.isIdle)
        sound.last(1000, at: 40)
        #expect(sound.speaking.isEmpty)
    }

    @Test func `any levels at any rate give a score within its range`() {
        var random = Seeded(1)
        for _ in 0..<50 {
            var loudness = Loudness()
            for _ in 0..<500 {
                for _ in 0..<Int.random(in: 0...40, using: &random) {
                    _ = loudness.add(AudioLevel(negativeDecibels: .random(in: 0...127, using: &random)))
                }
                loudness.endInterval()
                #expect((0...Loudness.most).contains(loudness.score))
            }
        }
    }
}
