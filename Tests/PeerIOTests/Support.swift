import Glibc
import PeerIO
import PeerLoop
import RTP
import TestSupport

/// Runs the closure on the loop and returns its result.
func onLoop<Result: Sendable>(_ loop: EventLoop, _ body: @Sendable () -> Result) async -> Result {
    await OnExecutor(loop).run(body)
}

/// Threads of this process.
func threadCount() -> Int { entryCount(of: "/proc/self/task") }

/// Open file descriptors of this process.
func descriptorCount() -> Int { entryCount(of: "/proc/self/fd") }

private func entryCount(of path: String) -> Int {
    guard let directory = opendir(path) else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
        if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    return count
}

/// Resident memory of this process.
func residentKilobytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard let text = fgets(&line, 128, file) else { return 0 }
    let pages = String(cString: text).split(separator: " ")
    return pages.count > 1 ? (Int(pages[1]) ?? 0) * 4 : 0
}

/// Whether this process runs under the address sanitizer.
var isAddressSanitized: Bool { dlsym(nil, "__asan_init") != nil }
