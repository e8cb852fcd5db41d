import FuzzTargets
import Glibc

// The target is named by the environment, because libFuzzer reads all arguments and starts the program again with them.
guard let name = getenv("FUZZ_TARGET").map({ String(cString: $0) }), let target = FuzzTarget.named(name) else {
    let names = FuzzTarget.all.map(\.name).joined(separator: ", ")
    print("Set FUZZ_TARGET to one of: \(names).")
    exit(2)
}
let run = target.run

/// libFuzzer's main function as a library (llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a library").
@_silgen_name("LLVMFuzzerRunDriver")
func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ callback: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt

var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(
    runDriver(&count, &arguments) { bytes, length in
        run(Array(UnsafeBufferPointer(start: bytes, count: length)))
        return 0
    })
