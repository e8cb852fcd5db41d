import Foundation
import TestFixtures
import Testing

@Suite struct ProgramsBesideTests {
    /// scripts/tests/test_checkout_names.py runs this in folders of several names.
    @Test func `the programs that tests run are beside the tests, whatever the checkout is called`() {
        for name in ["connectlive", "compose", "own-capturer", "ivf-capturer", "hello"] {
            let path = BuiltPackage.program(name).path
            #expect(FileManager.default.isExecutableFile(atPath: path), "\(path)")
        }
    }
}
