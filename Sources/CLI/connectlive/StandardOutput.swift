@preconcurrency internal import Glibc

/// How standard output is buffered.
enum StandardOutput {
    /// Writes each line when it is complete, also to a file or a journal, where C would collect kilobytes first.
    static func bufferLines() {
        setvbuf(stdout, nil, _IOLBF, 0)
    }
}
