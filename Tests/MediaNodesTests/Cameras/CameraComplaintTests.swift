import Cameras
import Foundation
import MediaGraph
import TestSupport
import Testing

@testable import MediaNodes

/// A recorded camera under its supervisor, in virtual time: as in a pipeline, without elements.
private final class SupervisedCamera {
    enum Shown: Equatable {
        case frame(Double)
        case standIn(Double)
    }

    let clock = CaptureClock()
    let system: CameraSystem
    let name: String
    private(set) var shown: [Shown] = []
    private(set) var events: [String] = []
    private(set) var notices: [CameraNotice.Kind] = []
    /// When a line was written to the log, in seconds: programs write one for each event and notice.
    private(set) var lines: [Double] = []
    /// The camera that was opened last.
    private(set) var place: CameraPlace?
    private var history = CameraSession.History()
    var counts: FrameCheck.Counts { history.counts }
    private(set) var openings = 0
    private let folder = TemporaryFolder()
    private let kept: FixtureCamera?
    private let controls: ControlValues
    private var supervisor = SourceSupervisor()
    private var session: CameraSession?
    private var identity: CameraPlace.Identity?

    static func fixture(_ card: String = "Webcam") throws -> CameraFixture {
        try CameraFixture(
            json: """
                {"version": 1, "driver": "uvcvideo", "card": "\(card)", "bus": "usb-0000:00:14.0-1",
                 "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
                 "controls": [{"identifier": 9963776, "title": "Brightness", "kind": "integer", "minimum": 0,
                               "maximum": 255, "standard": 128}]}
                """)
    }

    init(_ faults: [CameraFixture.Fault], controls: String = "", firstFrame: Double? = nil) throws {
        var fixture = try Self.fixture()
        fixture.faults = faults
        fixture.timing = .init(firstFrame: firstFrame)
        let file = folder.file("camera.json")
        try fixture.json.write(toFile: file, atomically: true, encoding: .utf8)
        name = "fixture:\(file)"
        system = CameraSystem(V4L2Backend(), tree: DeviceTree(root: folder.path), on: clock)
        kept = system.recorded(name)
        self.controls = try ControlValues(controls)
        handle(.started)
    }

    /// A camera of a machine that has these at its device files.
    init(_ name: String, among cameras: [String: CameraFixture], in made: MadeTree, bindings: CameraBindings? = nil)
        throws
    {
        let clock = clock
        self.name = name
        system = CameraSystem(
            FixtureBackend(cameras.mapValues { FixtureCamera($0, on: clock) }), tree: DeviceTree(root: made.root),
            bindings: bindings, on: clock)
        (kept, controls) = (nil, ControlValues())
        handle(.started)
    }

    private var now: MediaTime { MediaTime(clock.now) }
    var seconds: Double { clock.now / .seconds(1) - 1000 }
    var status: SourceSupervisor.Phase { supervisor.phase }
    var losses: Int { supervisor.losses }

    /// Runs until a time in seconds.
    func run(until end: Double) {
        while seconds < end {
            let due = supervisor.deadline.map { $0.seconds(since: now) } ?? end
            let wait = Duration.seconds(max(min(due, end - seconds), 0.000_001))
            if let session {
                read(session, wait)
            } else {
                clock.advance(by: wait)
            }
            handle(.timePassed)
        }
    }

    private func read(_ session: CameraSession, _ wait: Duration) {
        do throws(MediaError) {
            let item = try session.next(within: wait)
            history = session.history
            switch item {
            case .frame(_, let time):
                shown.append(.frame(time / .seconds(1) - 1000))
                handle(.frame)
            case .notice(let notice):
                notices.append(notice.kind)
                lines.append(seconds)
            case .woken, nil: break
            }
        } catch {
            handle(.failed(.failed(error)))
        }
    }

    private func handle(_ input: SourceSupervisor.Input) {
        for action in supervisor.handle(input, at: now) { perform(action) }
    }

    private func perform(_ action: SourceSupervisor.Action) {
        switch action {
        case .open: open()
        case .close:
            session?.close()
            session = nil
            handle(.closed)
        case .look(let candidate):
            handle(.looked(candidate, isThere: system.isThere(name, identity: identity)))
        case .fill: shown.append(.standIn(seconds))
        case .requestKeyframe: break
        case .report(let event):
            events.append(words(of: event))
            lines.append(seconds)
        }
    }

    private func words(of event: SourceSupervisor.Event) -> String {
        switch event {
        case .waiting(let cause): "waiting \(code(cause))"
        case .lost(let cause): "lost \(code(cause))"
        case .returned: "returned"
        case .failedOver: "failed over"
        }
    }

    private func open() {
        openings += 1
        do throws(MediaError) {
            let opened = try CameraSession(
                name, of: system, identity: identity,
                CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2"]), controls: controls, after: history)
            try opened.start()
            (session, identity, place) = (opened, opened.place.identity, opened.place)
            handle(.opened)
        } catch {
            handle(.openFailed(error.code == MediaError.Code.cameraAbsent ? .absent(error) : .failed(error)))
        }
    }

    private func code(_ cause: SourceSupervisor.Cause) -> String {
        switch cause {
        case .absent(let error), .failed(let error): error.code
        case .silent: "silent"
        case .unresponsive: "unresponsive"
        case .gone: "gone"
        }
    }

    /// The frames in an interval, in seconds.
    func frames(_ interval: Range<Double>) -> Int {
        shown.count { if case .frame(let time) = $0 { interval.contains(time) } else { false } }
    }

    /// The most lines of the log within so many seconds.
    func mostLines(within seconds: Double) -> Int {
        lines.map { first in lines.count { $0 >= first && $0 < first + seconds } }.max() ?? 0
    }

    /// The longest time without any output, in seconds.
    var longestGap: Double {
        let times = shown.map { shown in
            switch shown {
            case .frame(let time), .standIn(let time): time
            }
        }
        // From the beginning, and up to now.
        let all = [0] + times + [seconds]
        return zip(all, all.dropFirst()).map { $1 - $0 }.max() ?? 0
    }

    func brightness() throws -> Int {
        let device = try system.open(name, mayReserve: false).device
        let control = try #require(try device.controls().first)
        return try device.value(of: control)
    }
}

extension MediaNodesTests {
    /// The usual complaints about cameras on Linux, each as a test with a recorded camera.
    @Suite struct CameraComplaintTests {
        @Test func `after unplugging it is dead until a restart`() throws {
            let camera = try SupervisedCamera([.init(.unplugged, at: 5, until: 8)])
            camera.run(until: 15)
            #expect(camera.events == ["lost camera.lost", "returned"])
            #expect(camera.frames(0..<5) > 140 && camera.frames(9..<15) > 170)
            #expect(camera.longestGap < 0.3)
            #expect(camera.losses == 1)
        }

        @Test func `a camera that is later than the service at boot is never used`() throws {
            let camera = try SupervisedCamera([.init(.unplugged, at: 0, until: 60)])
            camera.run(until: 70)
            #expect(camera.events == ["waiting camera.absent", "returned"])
            #expect(camera.frames(0..<60) == 0 && camera.frames(61..<70) > 260)
        }

        @Test func `it freezes silently, without an error`() throws {
            let camera = try SupervisedCamera([.init(.silent, at: 5, until: 60)])
            camera.run(until: 70)
            #expect(camera.events == ["lost silent", "returned"])
            #expect(camera.longestGap < 0.3 && camera.frames(65..<70) > 140)
        }

        @Test func `the first frame never comes, as with a loose ribbon cable`() throws {
            let camera = try SupervisedCamera([], firstFrame: 1000)
            camera.run(until: 60)
            #expect(camera.events == ["waiting silent"])
            // Each attempt may cost a driver something.
            #expect((2...15).contains(camera.openings), "\(camera.openings)")
            // The stand-in begins after a second.
            #expect(camera.frames(0..<60) == 0 && camera.longestGap < 1.1)
        }

        @Test func `a slow camera takes seconds for its first frame`() throws {
            let camera = try SupervisedCamera([], firstFrame: 2.5)
            camera.run(until: 10)
            #expect(camera.openings == 1 && camera.frames(2..<10) > 200)
            #expect(!camera.events.contains { $0.hasPrefix("lost") })
        }

        @Test func `a full bus says ENOSPC`() throws {
            let camera = try SupervisedCamera([.init(.noBandwidth, at: 0, until: 20)])
            camera.run(until: 60)
            #expect(camera.events == ["waiting camera.bandwidth", "returned"])
            #expect(camera.openings < 20)
        }

        @Test func `controls are lost after a replug`() throws {
            let camera = try SupervisedCamera([.init(.unplugged, at: 5, until: 6)], controls: "brightness=9")
            camera.run(until: 4)
            #expect(try camera.brightness() == 9)
            camera.run(until: 12)
            #expect(camera.events == ["lost camera.lost", "returned"])
            #expect(try camera.brightness() == 9)
        }

        @Test func `the frame rate halves in the dark, and nothing says why`() throws {
            let camera = try SupervisedCamera([.init(.slow, at: 5, rate: FrameRate(15))])
            camera.run(until: 20)
            #expect(camera.notices == [.rateFell] && camera.events.isEmpty)
        }

        @Test func `corrupt frames are passed on, and one bad first frame stalls the start`() throws {
            let camera = try SupervisedCamera([.init(.corrupt, at: 0, until: 0.1), .init(.cut, at: 3, until: 4)])
            camera.run(until: 10)
            #expect((31...34).contains(camera.counts.damaged), "\(camera.counts)")
            #expect(camera.openings == 1 && camera.notices == [.damagedFrames] && camera.events.isEmpty)
            #expect(camera.frames(0..<0.2) > 1 && camera.frames(3.1..<3.9) == 0 && camera.frames(4.1..<10) > 170)
            // A second of damage is a second of stand-ins.
            #expect(camera.longestGap < 0.3)
        }

        @Test func `the source of a grabber changes its size`() throws {
            let camera = try SupervisedCamera([.init(.changedSource, at: 5, size: FrameSize(32, 24))])
            camera.run(until: 12)
            #expect(camera.events == ["lost camera.changed", "returned"])
            #expect(camera.frames(6..<12) > 150 && camera.longestGap < 0.3)
        }

        @Test func `timestamps jump, and run back`() throws {
            let camera = try SupervisedCamera(
                [.init(.shiftedTime, at: 2, until: 3, by: 3600), .init(.shiftedTime, at: 5, until: 6, by: -3600)])
            camera.run(until: 8)
            #expect(camera.events.isEmpty && camera.notices == [.wrongTimestamps])
            #expect((56...64).contains(camera.counts.wrongTimes))
            let times = camera.shown.compactMap { if case .frame(let time) = $0 { time } else { nil } }
            #expect(times.count > 230 && zip(times, times.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 < 0.1 })
        }

        @Test func `another program holds the camera`() throws {
            let camera = try SupervisedCamera([.init(.busy, at: 0, until: 10)])
            camera.run(until: 30)
            #expect(camera.events == ["waiting camera.busy", "returned"])
        }

        @Test func `a relay gives up retrying`() throws {
            // A camera that comes back after six hours is used within minutes.
            let hours = 6 * 3600.0
            let camera = try SupervisedCamera([
                .init(.failing, at: 5, until: 5.001), .init(.busy, at: 5.001, until: hours),
            ])
            camera.run(until: hours + 700)
            #expect(camera.status == .streaming)
        }

        @Test func `minutes of failures flood no log`() throws {
            // No attempt falls on a failure, as it would at intervals of half a second.
            let faults = (0..<240).map { number in
                let start = Double(number) * 0.49 + 0.2
                return CameraFixture.Fault(.failing, at: start, until: start + 0.001)
            }
            let camera = try SupervisedCamera(faults)
            camera.run(until: 120)
            // The camera is tried less and less often, not with each of its 240 failures.
            #expect((20...50).contains(camera.losses), "\(camera.losses)")
            #expect(camera.openings <= camera.losses + 2)
            #expect(camera.lines.count == camera.events.count && camera.lines.count <= camera.losses * 2)
            #expect(camera.longestGap < 0.3)
        }

        @Test func `a loose plug and a bad cable flood no log`() throws {
            // Three contacts in two seconds, and frames that are damaged and have wrong times.
            let faults = (0..<200).flatMap { number -> [CameraFixture.Fault] in
                let start = Double(number) * 0.61
                return [
                    .init(.corrupt, at: start, until: start + 0.1),
                    .init(.shiftedTime, at: start + 0.1, until: start + 0.4, by: 3600),
                    .init(.unplugged, at: start + 0.58, until: start + 0.61),
                ]
            }
            let camera = try SupervisedCamera(faults)
            camera.run(until: 120)
            #expect(camera.losses >= 30, "\(camera.losses)")
            // Six events at once, and then one in a second; a notice of each of two kinds in a minute.
            let (second, minute) = (camera.mostLines(within: 1), camera.mostLines(within: 60))
            #expect(second <= 6 + 1 + 2 && minute <= 6 + 60 + 2 * 2, "\(second) in a second, \(minute) in a minute")
            #expect(Set(camera.notices).isSubset(of: [.damagedFrames, .wrongTimestamps]))
            #expect(camera.notices.count <= 2 * 2, "\(camera.notices)")
        }

        @Test func `after a reboot a name means another camera, and twins with one serial number are mixed up`()
            throws
        {
            let folder = TemporaryFolder()
            let bindings = CameraBindings(file: folder.file("cameras.json"))
            let twin = "200901010001"
            for (name, camera) in [
                ("front", "serial:7C3F"), ("left", "serial:\(twin)@usb-0000:00:14.0-2"),
                ("right", "serial:\(twin)@usb-0000:00:14.0-3"),
            ] { try bindings.bind(name, to: .init(camera)) }
            for numbers in [[0, 2, 4], [4, 0, 2], [2, 4, 0], [4, 2, 0]] {
                // A reboot: the same plugs, other numbers, and nothing is remembered but the file.
                let made = MadeTree()
                var cameras: [String: CameraFixture] = [:]
                for (port, (number, serial)) in zip(numbers, ["7C3F", twin, twin]).enumerated() {
                    try made.plug("1-\(port + 1)", serial: serial)
                    try made.addVideo(number, name: "Webcam", at: "1-\(port + 1)")
                    cameras["/dev/video\(number)"] = try SupervisedCamera.fixture()
                }
                for (name, number) in zip(["front", "left", "right"], numbers) {
                    let camera = try SupervisedCamera(name, among: cameras, in: made, bindings: bindings)
                    camera.run(until: 2)
                    #expect(camera.place?.path == "/dev/video\(number)", "\(name): \(numbers)")
                    #expect(camera.frames(0..<2) > 50 && camera.events.isEmpty, "\(camera.events)")
                }
            }
        }

        @Test(arguments: ["auto", "serial:7C3F", "1-1"])
        func `a camera has several device files, and those for metadata show nothing`(name: String) throws {
            // The kernel lists two files of one name, in any order; the one for metadata captures no video.
            for (video, metadata) in [(0, 1), (1, 0)] {
                let made = MadeTree()
                try made.plug("1-1", serial: "7C3F")
                for number in 0...1 { try made.addVideo(number, name: "Webcam", at: "1-1") }
                let cameras = ["/dev/video\(video)": try SupervisedCamera.fixture()]
                let camera = try SupervisedCamera(name, among: cameras, in: made)
                camera.run(until: 2)
                #expect(camera.system.places().map(\.path) == ["/dev/video\(video)"])
                #expect(camera.place?.path == "/dev/video\(video)" && camera.place?.name == "serial:7C3F")
                #expect(camera.frames(0..<2) > 50 && camera.events.isEmpty, "\(camera.events)")
                let chosen = try SupervisedCamera("/dev/video\(metadata)", among: cameras, in: made)
                chosen.run(until: 2)
                #expect(chosen.frames(0..<2) == 0 && chosen.events.count == 1, "\(chosen.events)")
            }
        }

        @Test func `frames that arrive late keep the time of their capture`() throws {
            let camera = try SupervisedCamera([.init(.late, at: 2, until: 3, by: 0.1)])
            camera.run(until: 5)
            #expect(camera.counts.wrongTimes == 0 && camera.events.isEmpty && camera.frames(0..<5) > 145)
        }
    }
}
