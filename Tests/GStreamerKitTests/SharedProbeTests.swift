import Dispatch
import GStreamerKit
import Synchronization
import Testing
import TestSupport

@Suite struct SharedProbeTests {
    @Test func `a question that hangs delays no caller beyond the limit, and is not asked again meanwhile`() async {
        let end = DispatchSemaphore(value: 0)
        let probe = SharedProbe("test", seconds: 0.05) { end.wait() }
        for _ in 0..<5 { #expect(probe.answer() == nil) }
        #expect(probe.asked == 1)
        // The question that the later callers share follows.
        end.signal()
        await eventually("the next question") { probe.asked == 2 }
        end.signal()
    }

    @Test func `callers at the same time share one question, which begins after their calls`() async {
        let begin = DispatchSemaphore(value: 0)
        let count = Mutex(0)
        let probe = SharedProbe("test", seconds: 60) {
            begin.wait()
            return count.withLock { count in
                count += 1
                return count
            }
        }
        let answers = Collected<Int>()
        func call() { DispatchQueue(label: "caller").async { answers.append(probe.answer() ?? 0) } }
        call()
        await eventually("the first question") { probe.asked == 1 }
        for _ in 0..<10 { call() }
        await eventually("their calls") { probe.waiting == 11 }
        begin.signal()
        await eventually("the second question") { probe.asked == 2 }
        begin.signal()
        await eventually("the answers") { answers.count == 11 }
        #expect(answers.all.sorted() == [1] + Array(repeating: 2, count: 10))
    }
}
