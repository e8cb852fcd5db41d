import Foundation
import FuzzTargets
import Testing
import TestSupport

/// Replays the stored inputs of fuzzing: the corpus, and every input that once crashed a target.
@Suite struct FuzzTests {
    private static let corpus = Checkout.folder.appending(path: "Tests/fuzz/corpus")

    @Test(arguments: FuzzTarget.all.map(\.name))
    func `the stored inputs of a fuzz target neither trap nor break an invariant`(
        name: String
    ) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.corpus.appendingPathComponent(name)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!files.isEmpty)
        for file in files.sorted() {
            target.run(Array(try Data(contentsOf: folder.appendingPathComponent(file))))
        }
    }

    @Test func `every folder of the corpus belongs to a target`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
    }
}
