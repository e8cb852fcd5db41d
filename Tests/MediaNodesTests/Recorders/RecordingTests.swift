import GStreamerKit
import Glibc
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

private let rate = 30

/// The frames of so many seconds.
private func frames(_ seconds: Double) -> Int { Int(seconds * Double(rate)) }

/// The recordings of one run: every container, and every codec of ours.
private let files = ["vp8.webm", "vp9.webm", "av1.mkv", "h264.mkv", "h264.mp4", "h264.m3u8"]

/// Records the test pattern into `files`, each codec encoded once.
private func everyRecording(in folder: String, frames: Int) -> MediaGraph {
    func video(_ codec: String, _ encoder: Node) -> Chain {
        let names = files.filter { $0.hasPrefix(codec + ".") }
        return Chain(from: "pattern", port: "video") {
            encoder
            for name in names.dropLast() { Tee { Join(name, port: "video") } }
            Join(names[names.count - 1], port: "video")
        }
    }
    return MediaGraph {
        Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: Double(rate), frames: frames)
        for name in files { Node.recorder(name, path: "\(folder)/\(name)").with("segment", 1) }
        video("vp8", .videoEncoder("vp8", codec: .vp8))
        video("vp9", Node("vp9-encoder", name: "vp9"))
        video("av1", Node("av1-encoder", name: "av1", settings: ["bitrate": 600_000]))
        video("h264", .videoEncoder("h264", codec: .h264))
        Chain(from: "pattern", port: "audio") {
            Node.opusEncoder("opus")
            for name in files where !name.hasSuffix(".m3u8") { Tee { Join(name, port: "audio") } }
            Tee { Node.null() }
        }
        // The planner inserts an encoder for containers without Opus.
        Chain(from: "pattern", port: "audio") { Join("h264.m3u8", port: "audio") }
        Chain(from: "pattern", port: "video") { Node.frames("seen") }
        Chain(from: "pattern", port: "audio") { Node.sound("heard") }
    }
}

extension Node {
    fileprivate func with(_ setting: String, _ value: SettingValue) -> Node {
        var node = self
        node.settings[setting] = value
        return node
    }
}

/// The current readable part of a file is the part that a killed process would leave: written data belongs to the
/// kernel.
private func copyAsItIs(_ name: String, from folder: String, to target: String) {
    let isPlaylist = name.hasSuffix(".m3u8")
    for file in fileNames(in: folder) where file == name || isPlaylist && file.hasSuffix(".ts") {
        guard let source = fopen("\(folder)/\(file)", "rb") else { continue }
        defer { fclose(source) }
        var bytes = [UInt8](repeating: 0, count: fileSize("\(folder)/\(file)"))
        let count = fread(&bytes, 1, bytes.count, source)
        bytes = Array(bytes.prefix(count))
        // A playlist without its last line belongs to a growing recording, and a reader would wait for more.
        if file.hasSuffix(".m3u8") { bytes += Array("#EXT-X-ENDLIST\n".utf8) }
        writeFile(bytes, to: "\(target)/\(file)")
    }
}

/// The pattern's own offsets: recordings do not cause delays between its frames and its beeps.
private final class Pattern: Sendable {
    private let pictures = Collected<(number: UInt32, time: MediaTime)>()
    private let beeps = Collected<MediaTime>()

    func bind(_ bindings: inout NodeBindings) {
        bindings.frames["seen"] = { frame in
            if let number = frame.barCode { self.pictures.append((number, frame.captureTime)) }
        }
        bindings.audio["heard"] = { chunk in
            guard let loud = chunk.samples.firstIndex(where: { abs(Int($0)) > 6000 }) else { return }
            let time = MediaTime(nanoseconds: chunk.captureTime.nanoseconds + UInt64(loud / 2 * 1_000_000 / 48))
            if self.beeps.all.last.map({ time.seconds(since: $0) > 0.3 }) ?? true { self.beeps.append(time) }
        }
    }

    /// The tolerated offset between audio and video of a recording in milliseconds: MP4 begins its audio with the packet
    /// that is nearest to the first frame, up to half a packet away.
    static let limit = 11.0

    /// Milliseconds.
    var soundAfterPicture: Double {
        func seconds(_ time: MediaTime) -> Double { Double(time.nanoseconds) / 1e9 }
        let frames = pictures.all.map { (number: $0.number, seconds: seconds($0.time)) }
        return delays(of: beeps.all.map(seconds), after: frames, framesPerSecond: rate).median ?? 0
    }
}

extension MediaNodesTests {
    @Suite struct RecordingTests {
        @Test("Every recording has every frame, and its audio stays in step")
        func whole() async throws {
            let folder = TemporaryFolder()
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            let pattern = Pattern()
            pattern.bind(&bindings)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                everyRecording(in: folder.path, frames: 3 * rate), bindings: bindings, on: clock)
            clock.run(pipeline, sources: 2, frames: 3 * rate, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("the end") { events.all.contains { if case .ended = $0 { true } else { false } } }
            await pipeline.stop()
            let statistics = pipeline.statistics
            for name in files {
                let codec = String(name.split(separator: ".")[0])
                let encoder = try #require(statistics.encoders[codec])
                let encoded = encoder.encoded
                #expect(encoded == 3 * rate, "\(name)")
                let recording = DecodedRecording("\(folder.path)/\(name)")
                let problem = recording.problem
                #expect(problem == nil, "\(name)")
                let isContinuous = recording.isContinuous(but: 0)
                #expect(isContinuous, "\(name)")
                #expect(statistics.recorders[name]?.frames == recording.numbers.count, "\(name)")
                // The first keyframe may have come before any audio, and an MP4 may have dropped it.
                #expect(recording.numbers.count >= encoded - 8, "\(name)")
                let offsets = recording.soundAfterPicture(framesPerSecond: rate).map { $0 - pattern.soundAfterPicture }
                print(name, recording.numbers.count, "frames of", encoded, "audio after video in ms", offsets)
                #expect(offsets.count >= 2, "\(name)")
                #expect(offsets.allSatisfy { abs($0) < Pattern.limit }, "\(name): \(offsets)")
                #expect(recording.secondsOfSound > 2.5, "\(name)")
            }
        }

        @Test("A recording is playable at any moment")
        func killed() async throws {
            let folder = TemporaryFolder()
            var bindings = NodeBindings()
            let pattern = Pattern()
            pattern.bind(&bindings)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                everyRecording(in: folder.path, frames: 0), bindings: bindings, on: clock)
            let moments = [2.6, 3.35]
            let most = Mutex(frames(moments[0]))
            clock.run(pipeline, sources: 2, emptying: pipeline.watch()) { [weak pipeline] in
                (pipeline?.framesCaptured ?? 0) < most.withLock { $0 }
            }
            try await pipeline.start()
            var copies: [(moment: Double, folder: TemporaryFolder)] = []
            for moment in moments {
                most.withLock { $0 = frames(moment) }
                await eventually("\(moment) s") {
                    pipeline.statistics.encoders.values.allSatisfy { $0.encoded == frames(moment) }
                }
                let copy = TemporaryFolder()
                for name in files { copyAsItIs(name, from: folder.path, to: copy.path) }
                copies.append((moment, copy))
            }
            await pipeline.stop()
            // Decoded only now, because beside the encoders it would take long.
            for (moment, copy) in copies {
                for name in files {
                    let recording = DecodedRecording("\(copy.path)/\(name)")
                    let lost = moment - Double(recording.numbers.count) / Double(rate)
                    print(name, "at", moment, "s:", recording.numbers.count, "pictures,", lost, "s not there")
                    let problem = recording.problem
                    #expect(problem == nil, "\(name)")
                    let isContinuous = recording.isContinuous(but: 0)
                    #expect(isContinuous, "\(name)")
                    #expect(lost < (name.hasSuffix(".m3u8") ? 2.3 : name.hasSuffix(".mp4") ? 1.2 : 0.3), "\(name)")
                    let offsets = recording.soundAfterPicture(framesPerSecond: rate).map {
                        $0 - pattern.soundAfterPicture
                    }
                    #expect(offsets.count >= 1, "\(name)")
                    #expect(offsets.allSatisfy { abs($0) < Pattern.limit }, "\(name): \(offsets)")
                }
            }
        }

        @Test("A full disk ends the recording with a message; the recorded part is playable, and the others continue")
        func full() async throws {
            let folder = TemporaryFolder()
            let disk = folder.path + "/disk"
            mkdir(disk, 0o700)
            // A disk of 40 kB if mounting is allowed; else a file that accepts nothing.
            let isMounted = mount("tmpfs", disk, "tmpfs", 0, "size=40k") == 0
            defer {
                if isMounted { umount2(disk, Int32(MNT_DETACH)) }
                rmdir(disk)
            }
            for name in isMounted ? ["a.mkv", "a.mp4", "a.m3u8"] : ["/dev/full"] {
                let path = isMounted ? "\(disk)/\(name)" : name
                let seen = Collected<UInt32?>()
                let failures = Collected<MediaError>()
                let clock = SteppedClock()
                var bindings = NodeBindings()
                bindings.frames["seen"] = { seen.append($0.barCode) }
                bindings.events = { if case .failed(let error) = $0 { failures.append(error) } }
                let pipeline = try await MediaPipeline(
                    MediaGraph {
                        Node.recorder("recorder", path: path).with("segment", 1)
                        Chain {
                            Node.testPattern("pattern", width: 320, height: 240)
                            Tee {
                                Node.videoEncoder("encoder", codec: .h264, bitrate: .kilobitsPerSecond(3000))
                                Tee { Node.recorder("other", path: "\(folder.path)/whole.mkv") }
                                Join("recorder", port: "video")
                            }
                            Node.frames("seen")
                        }
                    }, bindings: bindings, on: clock)
                clock.run(pipeline)
                try await pipeline.start()
                await eventually(within: 20, "the disk to be full") { failures.count == 1 }
                let failure = try #require(failures.all.first)
                #expect(failure.code == MediaError.Code.fileFull, "\(failure)")
                #expect(failure.message.contains(path))
                let before = pipeline.statistics.encoders["encoder"]?.encoded ?? 0
                let seenBefore = seen.count
                await eventually("30 frames more") {
                    (pipeline.statistics.encoders["encoder"]?.encoded ?? 0) >= before + 30
                        && seen.count >= seenBefore + 30
                }
                await pipeline.stop()
                let whole = DecodedRecording("\(folder.path)/whole.mkv")
                #expect(whole.numbers.count == pipeline.statistics.encoders["encoder"]?.encoded)
                guard isMounted, name != "a.m3u8" else { continue }
                let recording = DecodedRecording(path)
                #expect(recording.numbers.count >= 10, "\(name)")
                let isContinuous = recording.isContinuous(
                    but: pipeline.statistics.encoders["encoder"]?.droppedBeforeEncoder ?? 0)
                #expect(isContinuous, "\(name)")
                for name in fileNames(in: disk) { unlink("\(disk)/\(name)") }
            }
        }

        @Test(
            "An unwritable path is refused at the start",
            arguments: ["/nowhere/a.mkv", "/proc/a.mp4", "/nowhere/a.m3u8"])
        func unwritable(path: String) async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Node.recorder("recorder", path: path)
                }
            }
            await #expect {
                try await MediaPipeline(graph).start()
            } throws: { error in
                (error as? MediaError)?.code == MediaError.Code.fileUnwritable && "\(error)".contains(path)
            }
        }

        @Test("An optional recording to an unwritable path is omitted with its reason, and the rest runs")
        func optional() async throws {
            let seen = Collected<UInt32?>()
            var bindings = NodeBindings()
            bindings.frames["seen"] = { seen.append($0.barCode) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Tee(isOptional: true) { Node.recorder("recorder", path: "/nowhere/a.mkv") }
                        Node.frames("seen")
                    }
                }, bindings: bindings, on: clock)
            #expect(pipeline.plan.omitted.map(\.node) == ["recorder"])
            #expect(pipeline.plan.omitted.first?.code == MediaError.Code.fileUnwritable)
            clock.run { _ in seen.count < 20 }
            try await pipeline.start()
            await eventually("20 frames") { seen.count == 20 }
            await pipeline.stop()
        }

        @Test(
            "A recording that joins a running graph begins at zero, at a keyframe, and is complete when it is removed",
            arguments: ["a.mkv", "a.mp4", "a.webm", "a.m3u8"])
        func joins(name: String) async throws {
            // In memory: HLS waits for the disk with each segment. That takes seconds on a busy one, and the end has 3 s.
            let folder = TemporaryFolder(in: "/dev/shm")
            let path = "\(folder.path)/\(name)"
            let codec: VideoCodec = name == "a.webm" ? .vp8 : .h264
            func graph(_ isRecording: Bool) -> MediaGraph {
                MediaGraph {
                    Node.testPattern("pattern", width: 160, height: 120)
                    Chain(from: "pattern", port: "video") {
                        Node.videoEncoder("encoder", codec: codec)
                        Node.recorder("all", path: "\(folder.path)/all.mkv")
                    }
                    Chain(from: "pattern", port: "audio") {
                        Node.opusEncoder("opus")
                        Join("all", port: "audio")
                    }
                    Chain(from: "pattern", port: "video") { Node.frames("seen") }
                    Chain(from: "pattern", port: "audio") { Node.sound("heard") }
                    if isRecording {
                        Node.recorder("joined", path: path).with("segment", 1)
                        Chain(from: "encoder") { Join("joined", port: "video") }
                        Chain(from: "opus") { Join("joined", port: "audio") }
                    }
                }
            }
            var bindings = NodeBindings()
            let pattern = Pattern()
            pattern.bind(&bindings)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph(false), bindings: bindings, on: clock)
            let most = Mutex(rate)
            clock.run(pipeline, sources: 2, emptying: pipeline.watch()) { [weak pipeline] in
                (pipeline?.framesCaptured ?? 0) < most.withLock { $0 }
            }
            try await pipeline.start()
            func encoded() -> Int { pipeline.statistics.encoders["encoder"]?.encoded ?? 0 }
            await eventually("a second") { encoded() == rate }
            most.withLock { $0 = .max }
            try await pipeline.apply(graph(true), within: 5)
            let last = pipeline.framesCaptured + 5 * rate / 2
            most.withLock { $0 = last }
            await eventually("two and a half seconds of recording") { encoded() == last }
            // The last frame is on its way to the recordings until the encoder's queue is idle.
            let isHandedOver = AtomicBool()
            pipeline.graph.node("encoder")?.element("queue").source.whenIdle { isHandedOver.raise() }
            await eventually("the last frame") { isHandedOver.value }
            try await pipeline.apply(graph(false))
            #expect(pipeline.shortfalls.isEmpty)
            let joined = DecodedRecording(path)
            let end = last + rate / 2
            most.withLock { $0 = end }
            await eventually("half a second more") { encoded() == end }
            await pipeline.stop()
            #expect(joined.problem == nil)
            #expect(joined.numbers.count >= 5 * rate / 2)
            #expect(joined.numbers.last == UInt32(last - 1))
            let isContinuous = joined.isContinuous(but: 0)
            #expect(isContinuous)
            // HLS starts its clock at an eighth of a second, as transport streams do.
            #expect((joined.times.first ?? 9) < 0.13)
            let offsets = joined.soundAfterPicture(framesPerSecond: rate).map { $0 - pattern.soundAfterPicture }
            print(name, "joined:", joined.numbers.count, "frames, audio after video in ms", offsets)
            #expect(offsets.count >= 1)
            #expect(offsets.allSatisfy { abs($0) < Pattern.limit }, "\(offsets)")
            let all = DecodedRecording("\(folder.path)/all.mkv")
            #expect(all.problem == nil)
            #expect(all.numbers.count == pipeline.statistics.encoders["encoder"]?.encoded)
            let isWhole = all.isContinuous(but: 0)
            #expect(isWhole)
        }

        @Test("A recording that is stopped early is complete")
        func stopped() async throws {
            let folder = TemporaryFolder()
            var bindings = NodeBindings()
            Pattern().bind(&bindings)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                everyRecording(in: folder.path, frames: 0), bindings: bindings, on: clock)
            clock.run(pipeline, sources: 2, emptying: pipeline.watch()) { [weak pipeline] in
                (pipeline?.framesCaptured ?? 0) < 2 * rate
            }
            try await pipeline.start()
            await eventually("a second") { (pipeline.statistics.encoders["h264"]?.encoded ?? 0) >= rate }
            await pipeline.stop()
            let statistics = pipeline.statistics
            for name in files {
                let recording = DecodedRecording("\(folder.path)/\(name)")
                let problem = recording.problem
                #expect(problem == nil, "\(name)")
                #expect(recording.numbers.count == statistics.recorders[name]?.frames, "\(name)")
                let isContinuous = recording.isContinuous(
                    but: statistics.encoders.values.map(\.droppedBeforeEncoder).max() ?? 0)
                #expect(isContinuous, "\(name)")
            }
            let playlist = try #require(FileAccess.text(of: "\(folder.path)/h264.m3u8"))
            #expect(playlist.contains(RecordingContainer.endOfPlaylist))
        }

        @Test("A recording that is stopped while it is paused is complete")
        func stoppedWhilePaused() async throws {
            let folder = TemporaryFolder()
            let names = ["a.mkv", "a.mp4", "a.m3u8"]
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 30)
                    for name in names {
                        Node.recorder(name, path: "\(folder.path)/\(name)")
                        Chain(from: "pattern", port: "video") { Join(name, port: "video") }
                    }
                }, on: clock)
            let enough = 20
            clock.run(pipeline) { [weak pipeline] in (pipeline?.framesCaptured ?? 0) < enough }
            try await pipeline.start()
            func recorded(_ name: String) -> Int { pipeline.statistics.recorders[name]?.frames ?? 0 }
            await eventually("pictures") { names.allSatisfy { recorded($0) >= enough } }
            // The source's next frame has the time at which it continues, which must not be that of the last frame.
            clock.advance(by: 0.001, pending: 1)
            await pipeline.pause()
            await pipeline.stop()
            #expect(pipeline.shortfalls.isEmpty)
            for name in names {
                #expect(DecodedRecording("\(folder.path)/\(name)").numbers.count == recorded(name), "\(name)")
            }
        }

        @Test("Video alone and audio alone can be recorded")
        func alone() async throws {
            let folder = TemporaryFolder()
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Node.testPattern("pattern", width: 160, height: 120)
                    Chain(from: "pattern", port: "video") { Node.recorder("silent", path: "\(folder.path)/silent.mp4") }
                    Chain(from: "pattern", port: "audio") {
                        // The planner encodes, so the recorder's ports accept raw media too.
                        Join("blind", port: "audio")
                    }
                    Node.recorder("blind", path: "\(folder.path)/blind.webm")
                }, on: clock)
            clock.run(pipeline, sources: 2, emptying: pipeline.watch()) { [weak pipeline] in
                (pipeline?.framesCaptured ?? 0) < 2 * rate
            }
            try await pipeline.start()
            await eventually("2 s") { pipeline.statistics.recorders["silent"]?.frames == 2 * rate }
            await pipeline.stop()
            #expect(DecodedRecording("\(folder.path)/silent.mp4").numbers == (0..<2 * rate).map { UInt32($0) })
            let blind = DecodedRecording("\(folder.path)/blind.webm")
            #expect(blind.numbers.isEmpty)
            #expect(abs(blind.secondsOfSound - 2) < 0.05, "\(blind.secondsOfSound) s")
            #expect(blind.beeps.count >= 1)
        }
    }
}
