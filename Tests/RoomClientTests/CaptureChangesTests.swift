import RoomProtocol
import TestSupport
import Testing

@testable import RoomClient

/// The order in which changes of local media are applied, without a pipeline.
@Suite struct CaptureChangesTests {
    private typealias Change = CaptureChanges.Change

    /// The media of a capture that a test drives: what runs, and what became of each change.
    private struct Model {
        static let impossible = "impossible"
        static let error = RoomError(.media, "impossible")

        var changes = CaptureChanges(.camera(nil))
        /// What runs. Nil while nothing does.
        var running: MediaRequest?
        var attempt: CaptureChanges.Attempt?
        let results = Collected<(number: Int, isSuccess: Bool)>()
        var count = 0

        mutating func make(_ purpose: Change.Purpose, _ edit: @escaping CaptureChanges.Edit = { _ in }) -> Change {
            count += 1
            let (number, results) = (count, results)
            return Change(purpose: purpose, edit: edit) { result in
                results.append((number, (try? result.get()) != nil))
            }
        }

        func evaluate(_ edits: [CaptureChanges.Edit], on base: MediaRequest) -> MediaRequest {
            edits.reduce(into: base) { request, edit in edit(&request) }
        }

        mutating func stop() {
            let stop = make(.stop)
            for change in changes.stop(stop).refused { change.done(.failure(CaptureChanges.stopped)) }
        }

        mutating func finish() {
            guard let attempt else { return }
            self.attempt = nil
            let request = evaluate(attempt.edits, on: changes.request)
            let outcome: CaptureChanges.Outcome
            if request.camera == Self.impossible, attempt.isCapturing, !changes.isCancelled {
                outcome = .refused(Self.error)
            } else if changes.isCancelled, attempt.isCapturing {
                (outcome, running) = (.interrupted, nil)
            } else {
                outcome = .fulfilled
                running = attempt.isCapturing ? request : nil
            }
            for (change, result) in changes.finish(outcome, request) { change.done(result) }
        }

        /// One step, as threads would take it.
        mutating func step(_ random: inout Seeded) {
            switch Int.random(in: 0..<10, using: &random) {
            case 0: _ = changes.add(make(.start))
            case 1: _ = changes.add(make(.publish))
            case 2: stop()
            case 3:
                _ = changes.add(make(.edit) { $0.camera = Self.impossible })
            case 4:
                let width = Int.random(in: 16..<2000, using: &random)
                _ = changes.add(make(.edit) { $0.width = width })
            case 5: _ = changes.add(make(.edit) { $0.isMirrored.toggle() })
            case 6: _ = changes.add(make(.edit) { $0.camera = "other" })
            case 7: _ = changes.add(make(.refresh))
            default: work()
            }
        }

        /// Begins an attempt, or ends the one in progress.
        mutating func work() {
            if attempt == nil { attempt = changes.next() } else { finish() }
        }
    }

    @Test func `random changes end with what runs being what is requested, and each is done once`() {
        for seed in 1...5000 as ClosedRange<UInt64> {
            var (model, random) = (Model(), Seeded(seed))
            for _ in 0..<Int.random(in: 1...40, using: &random) { model.step(&random) }
            repeat { model.work() } while model.changes.isBusy
            #expect(model.changes.isCapturing == (model.running != nil) || model.changes.isCancelled, "seed \(seed)")
            if let running = model.running { #expect(running == model.changes.request, "seed \(seed)") }
            #expect(model.changes.pending.isEmpty, "seed \(seed)")
            #expect(
                model.results.all.map(\.number).sorted() == Array(1...max(model.count, 1)).filter { $0 <= model.count },
                "seed \(seed)")
        }
    }

    @Test func `a stop comes before the changes that wait, and refuses the starts among them`() throws {
        var model = Model()
        _ = model.changes.add(model.make(.start))
        model.work()
        model.finish()
        _ = model.changes.add(model.make(.edit) { $0.width = 100 })
        _ = model.changes.add(model.make(.start))
        model.stop()
        #expect(model.results.all.map(\.number) == [1, 3])
        model.work()
        #expect(model.attempt?.isCapturing == false)
        model.finish()
        #expect(model.running == nil && model.changes.request.width != 100)
        repeat { model.work() } while model.changes.isBusy
        #expect(model.changes.request.width == 100 && model.running == nil)
        #expect(model.results.all.map(\.isSuccess) == [true, false, true, true])
    }

    @Test func `of changes that are refused together, each is tried alone`() throws {
        var model = Model()
        _ = model.changes.add(model.make(.start))
        _ = model.changes.add(model.make(.edit) { $0.camera = Model.impossible })
        _ = model.changes.add(model.make(.edit) { $0.width = 100 })
        repeat { model.work() } while model.changes.isBusy
        #expect(model.results.all.map(\.isSuccess) == [true, false, true])
        #expect(model.running?.width == 100 && model.running?.camera == nil)
    }

    @Test func `a stop during an attempt keeps its edits and refuses its start`() {
        var model = Model()
        _ = model.changes.add(model.make(.start))
        _ = model.changes.add(model.make(.edit) { $0.width = 100 })
        model.work()
        model.stop()
        repeat { model.work() } while model.changes.isBusy
        #expect(model.changes.request.width == 100 && !model.changes.isCapturing && model.running == nil)
        #expect(model.results.all.map(\.isSuccess) == [false, true, true])
    }
}
