import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Looks for a sound system on behalf of all microphones and loudspeakers that wait for one. They share the answer that there is none, and the
/// question is asked less and less often, unless something on this machine shows that a sound system begins.
package final class SoundRetries: Sendable {
    /// A question without a positive answer.
    private struct Question {
        /// Set while a thread asks.
        var isAsked: DispatchGroup?
        /// How many negative answers have come in a row.
        var failures = 0
        /// When the last one came, and the signs before it.
        var answered = MediaTime(nanoseconds: 0)
        var signs = ""
        /// How often it was asked.
        var count = 0
    }

    /// Those of this process.
    package static let shared = SoundRetries(now: { GStreamer.now }, signs: { AudioSystem.signs })

    private static let pauses = Backoff(first: 1, longest: 30)

    private let questions = Mutex<[String: Question]>([:])
    private let now: @Sendable () -> MediaTime
    private let signs: @Sendable () -> String

    /// - Parameter signs: a text that changes when a sound system begins or ends on this machine.
    package init(now: @escaping @Sendable () -> MediaTime, signs: @escaping @Sendable () -> String) {
        (self.now, self.signs) = (now, signs)
    }

    /// Returns the answer to a question, or nil at once if it was negative a short time ago. Blocks as long as `ask` does.
    ///
    /// - Parameter question: the same text for the same question.
    package func answer<Answer>(_ question: String, _ ask: () -> Answer?) -> Answer? {
        let signs = signs()
        while true {
            let other = questions.withLock { questions -> DispatchGroup?? in
                var state = questions[question, default: Question()]
                if let other = state.isAsked { return other }
                if state.failures > 0, state.signs == signs, now() < due(state) { return .some(nil) }
                let group = DispatchGroup()
                group.enter()
                (state.isAsked, state.count) = (group, state.count + 1)
                questions[question] = state
                return nil
            }
            switch other {
            case nil: return answer(question, signs, ask)
            case .some(nil): return nil
            case .some(let group?): group.wait()
            }
        }
    }

    private func answer<Answer>(_ question: String, _ signs: String, _ ask: () -> Answer?) -> Answer? {
        let answer = ask()
        questions.withLock { questions in
            var state = questions[question] ?? Question()
            state.isAsked?.leave()
            state.isAsked = nil
            let isNew = state.signs != signs
            (state.answered, state.signs) = (now(), signs)
            state.failures = answer == nil ? (isNew ? 1 : state.failures + 1) : 0
            questions[question] = state
        }
        return answer
    }

    private func due(_ question: Question) -> MediaTime {
        question.answered + .seconds(Self.pauses.pause(after: question.failures - 1))
    }

    /// How often a question was asked.
    package func count(of question: String) -> Int { questions.withLock { $0[question]?.count ?? 0 } }
}
