@preconcurrency internal import Glibc

/// How standard output is buffered.
enum StandardOutput {
    /// Writes each complete line immediately, also to a file or a journal. By default, C collects kilobytes.
    static func bufferLines() {
        setvbuf(stdout, nil, _IOLBF, 0)
    }
}
