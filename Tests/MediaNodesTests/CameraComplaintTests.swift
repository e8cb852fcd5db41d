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
    private var history = CameraSession.History()
    var counts: FrameCheck.Counts { history.counts }
    private(set) var openings = 0
    private let folder = TemporaryFolder()
    private let camera: FixtureCamera?
    private let controls: ControlValues
    private var supervisor = SourceSupervisor()
    private var session: CameraSession?
    private var identity: CameraPlace.Identity?

    init(_ faults: [CameraFixture.Fault], controls: String = "", firstFrame: Double? = nil) throws {
        var fixture = try CameraFixture(
            json: """
                {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
                 "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
                 "controls": [{"identifier": 9963776, "title": "Brightness", "kind": "integer", "minimum": 0,
                               "maximum": 255, "standard": 128}]}
                """)
        fixture.faults = faults
        fixture.timing = .init(firstFrame: firstFrame)
        let file = folder.file("camera.json")
        try fixture.json.write(toFile: file, atomically: true, encoding: .utf8)
        name = "fixture:\(file)"
        system = CameraSystem(V4L2Backend(), tree: DeviceTree(root: folder.path), on: clock)
        camera = system.recorded(name)
        self.controls = try ControlValues(controls)
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
            case .notice(let notice): notices.append(notice.kind)
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
        case .report(.waiting(let cause)): events.append("waiting \(code(cause))")
        case .report(.lost(let cause)): events.append("lost \(code(cause))")
        case .report(.returned): events.append("returned")
        case .report(.failedOver): events.append("failed over")
        }
    }

    private func open() {
        openings += 1
        do throws(MediaError) {
            let opened = try CameraSession(
                name, of: system, identity: identity,
                CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2"]), controls: controls, after: history)
            try opened.start()
            (session, identity) = (opened, opened.place.identity)
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
            #expect(camera.events.count <= camera.losses * 2 && camera.notices.isEmpty)
            #expect(camera.longestGap < 0.3)
        }

        @Test func `frames that arrive late keep the time of their capture`() throws {
            let camera = try SupervisedCamera([.init(.late, at: 2, until: 3, by: 0.1)])
            camera.run(until: 5)
            #expect(camera.counts.wrongTimes == 0 && camera.events.isEmpty && camera.frames(0..<5) > 145)
        }
    }
}
