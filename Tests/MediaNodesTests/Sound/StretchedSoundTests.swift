import Glibc
import TestSupport
import Testing

@testable import MediaNodes

struct StretchedSoundTests {
    private static let piece = 960

    /// A tone in both channels.
    private func tone(_ hertz: Double, from frame: Int, amplitude: Double = 8000) -> [Int16] {
        (frame..<(frame + Self.piece)).flatMap { frame -> [Int16] in
            let sample = Int16(amplitude * sin(2 * Double.pi * Double(frame) * hertz / 48_000))
            return [sample, sample]
        }
    }

    /// Stretches a tone until it has changed by so many frames. Returns all of the left channel.
    private func stretched(_ hertz: Double, by frames: Int, seconds: Int = 5) -> (samples: [Int16], changed: Int) {
        var sound = StretchedSound()
        var (changed, samples) = (0, [Int16]())
        for piece in 0..<(seconds * 50) {
            let before = tone(hertz, from: piece * Self.piece)
            let after = sound.change(before, by: frames - changed) ?? before
            changed += (after.count - before.count) / 2
            samples += Swift.stride(from: 0, to: after.count, by: 2).map { after[$0] }
        }
        return (samples, changed)
    }

    @Test(arguments: [9600, -9600, 2400]) func `sound becomes as long as it is to be, within 3 ms`(frames: Int) {
        #expect(abs(stretched(220, by: frames).changed - frames) < 144)
    }

    @Test(arguments: [110.0, 220, 440, 987], [9600, -9600])
    func `a tone keeps its form: no sample leaps`(hertz: Double, frames: Int) throws {
        let samples = stretched(hertz, by: frames).samples
        let steps = zip(samples, samples.dropFirst()).map { abs(Int($0) - Int($1)) }
        // The steepest step of the tone itself.
        let steepest = 8000 * 2 * Double.pi * hertz / 48_000
        #expect(Double(try #require(steps.max())) < 1.5 * steepest + 2)
        // Nor does it become quiet.
        for piece in stride(from: 0, to: samples.count - 960, by: 960) {
            #expect(try #require(samples[piece..<(piece + 960)].max()) > 6500)
        }
    }

    /// Of 45 ms, and of more.
    @Test(arguments: [(2160, 5), (9600, 2)])
    func `sound changes by a tenth of the time at most, and by a third while it is far from its goal`(
        wanted: Int, pieces: Int
    ) {
        var sound = StretchedSound()
        var changes: [Int] = []
        for piece in 0..<250 where sound.change(tone(220, from: piece * Self.piece), by: wanted) != nil {
            changes.append(piece)
        }
        #expect(changes.count > 10)
        #expect(zip(changes, changes.dropFirst()).allSatisfy { $1 - $0 == pieces })
    }

    @Test func `noise is changed only after a while, and quiet sound at once`() throws {
        var generator = Seeded(3)
        var sound = StretchedSound()
        var first: Int?
        for piece in 0..<100 where first == nil {
            let noise = (0..<(2 * Self.piece)).map { _ in Int16.random(in: -8000...8000, using: &generator) }
            if sound.change(noise, by: 9600) != nil { first = piece }
        }
        #expect(try #require(first) > 5)
        var quiet = StretchedSound()
        #expect(quiet.change([Int16](repeating: 3, count: 2 * Self.piece), by: 9600)?.count == 2 * (Self.piece + 480))
    }

    @Test func `pieces that are too short, and little that is wanted, change nothing`() {
        var sound = StretchedSound()
        #expect(sound.change([Int16](repeating: 0, count: 200), by: 9600) == nil)
        #expect(sound.change([], by: 9600) == nil)
        #expect(sound.change([Int16](repeating: 0, count: 1920), by: 100) == nil)
    }
}
