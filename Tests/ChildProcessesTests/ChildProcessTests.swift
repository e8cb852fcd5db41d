import ChildProcesses
import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

@Suite(.serialized) struct ChildProcessTests {
    /// Runs a Python program and collects its output.
    private func python(_ program: String, _ descriptors: [Int32?] = []) throws -> (ChildProcess, OutputPipe) {
        let (output, end) = try OutputPipe.make()
        let child = try ChildProcess(
            path: "/usr/bin/python3", arguments: ["-c", program], environment: ["KEY": "a b"],
            descriptors: [nil, end.number, end.number] + descriptors)
        withExtendedLifetime(end) {}
        return (child, output)
    }

    /// All output until the last writer has closed the pipe.
    private func text(_ output: OutputPipe) -> String {
        var bytes: [UInt8] = []
        while true {
            switch output.receive(4096) {
            case .bytes(let more): bytes += more
            case .nothing: _ = wait(output.number)
            case .end: return String(decoding: bytes, as: UTF8.self)
            }
        }
    }

    private func line(_ output: OutputPipe) -> String {
        var bytes: [UInt8] = []
        while bytes.last != 0x0a {
            guard case .bytes(let more) = output.receive(1) else {
                guard wait(output.number) else { break }
                continue
            }
            bytes += more
        }
        return String(decoding: bytes.dropLast(), as: UTF8.self)
    }

    private func wait(_ descriptor: Int32) -> Bool {
        var asked = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&asked, 1, 20_000) > 0
    }

    @Test func `a program gets its arguments, variables and descriptors, and no others`() throws {
        let extra = open("/dev/zero", O_RDONLY | O_CLOEXEC)
        let leaking = open("/dev/zero", O_RDONLY)
        defer {
            close(extra)
            close(leaking)
        }
        let (child, output) = try python(
            "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], os.environ['KEY'], "
                + "os.readlink('/proc/self/fd/3'), os.getpgid(0) == os.getpid(), "
                + "open('/proc/self/status').read().split('SigBlk:')[1].split()[0])", [extra])
        #expect(text(output) == "[0, 1, 2, 3] a b /dev/zero True 0000000000000000\n")
        #expect(wait(child.endDescriptor))
        #expect(child.ended == .exited(0))
    }

    @Test func `the end of a program is reported with its status`() throws {
        let (child, _) = try python("raise SystemExit(3)")
        #expect(wait(child.endDescriptor) && child.ended == .exited(3) && child.ended == .exited(3))
        let (killed, _) = try python("import os; os.abort()")
        #expect(wait(killed.endDescriptor) && killed.ended == .killed(SIGABRT))
    }

    @Test func `a program that cannot start is reported immediately and leaks nothing`() {
        #expect(throws: ChildProcess.Failure.self) {
            _ = try ChildProcess(path: "/nonexistent", arguments: [], environment: [:], descriptors: [])
        }
        #expect(throws: ChildProcess.Failure.self) {
            _ = try ChildProcess(path: "/etc/passwd", arguments: [], environment: [:], descriptors: [])
        }
        var status: Int32 = 0
        #expect(waitpid(-1, &status, WNOHANG) == -1, "no process is left to be waited for")
    }

    /// A program that cannot be opened while this lives, as on a dead file system: the kernel waits for the end of a lease.
    private final class UnopenedProgram {
        let path: String
        private var descriptor: Int32

        init(in folder: TemporaryFolder) throws {
            // The kernel notifies the holder of a lease, whose process would end.
            signal(SIGIO, SIG_IGN)
            path = folder.file("program")
            try "#!/bin/sh\ntouch '\(folder.file("ran"))'\n".write(toFile: path, atomically: false, encoding: .utf8)
            try #require(chmod(path, 0o700) == 0)
            descriptor = open(path, O_RDONLY | O_CLOEXEC)
            // F_SETLEASE, which Swift's Glibc lacks.
            try #require(fcntl(descriptor, 1024, Int32(F_WRLCK)) == 0)
        }

        func release() {
            if descriptor >= 0 { close(descriptor) }
            descriptor = -1
        }

        deinit { release() }
    }

    private var starters: Int {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return threads.count { thread in
            let name = try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8)
            return name == "starts programs\n"
        }
    }

    @Test func `a program on a dead file system delays no other, and is reported in time`() async throws {
        let folder = TemporaryFolder()
        let dead = try UnopenedProgram(in: folder)
        let error = #expect(throws: ChildProcess.Failure.self) {
            _ = try ChildProcess(path: dead.path, arguments: [], environment: [:], descriptors: [], limit: 0.05)
        }
        #expect(error?.reason == "its file system is not responding")
        let (child, _) = try python("raise SystemExit(3)")
        #expect(wait(child.endDescriptor) && child.ended == .exited(3))
        // Some tries later.
        for _ in 0..<30 {
            #expect(throws: ChildProcess.Failure.self) {
                _ = try ChildProcess(path: dead.path, arguments: [], environment: [:], descriptors: [], limit: 0.02)
            }
        }
        #expect((2...16).contains(starters))
        dead.release()
        await eventually("programs start again") {
            let child = try? ChildProcess(path: "/bin/true", arguments: [], environment: [:], descriptors: [])
            return child.map { self.wait($0.endDescriptor) && $0.ended == .exited(0) } ?? false
        }
        var status: Int32 = 0
        await eventually("no process is left to be waited for") { waitpid(-1, &status, WNOHANG) == -1 }
    }

    @Test func `a program that does not end is killed with all its children`() throws {
        let (child, output) = try python(
            "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                + "if os.fork() == 0: time.sleep(100)\n"
                + "print('ready', flush=True); time.sleep(100)")
        #expect(line(output) == "ready")
        #expect(child.end(within: 0.2) == .killed(SIGKILL))
        // The pipe ends with its last writer, which is the program's own child.
        #expect(text(output) == "")
    }

    @Test func `a program ends by itself on request`() throws {
        let (child, output) = try python(
            "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('ready', flush=True)\n"
                + "while True: time.sleep(1)")
        #expect(line(output) == "ready")
        #expect(child.end(within: 20) == .exited(7))
    }

    @Test func `a program may write any amount of output before it ends on request`() throws {
        let (child, output) = try python(
            "import os, signal\n"
                + "def leave(*_): os.write(1, bytes(1 << 20)); os._exit(7)\n"
                + "signal.signal(signal.SIGTERM, leave); print('ready', flush=True)\n"
                + "while True: signal.pause()")
        #expect(line(output) == "ready")
        #expect(child.end(within: 20, discarding: [output]) == .exited(7))
    }

    @Test func `a pipe that has ended is not polled repeatedly`() throws {
        let (child, output) = try python(
            "import os, signal, sys, time\n"
                + "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
                + "os.close(1); os.close(2); time.sleep(100)")
        #expect(line(output) == "ready")
        while case .bytes = output.receive(1) {}
        var (before, after) = (timespec(), timespec())
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before)
        #expect(child.end(within: 1, discarding: [output]) == .killed(SIGKILL))
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after)
        let seconds = Double(after.tv_sec - before.tv_sec) + Double(after.tv_nsec - before.tv_nsec) / 1e9
        #expect(seconds < 0.1)
    }

    @Test func `a signal does not shorten a program's time limit`() throws {
        let (child, output) = try python(
            "import os, signal, time\n"
                + "def leave(*_): time.sleep(0.3); os._exit(7)\n"
                + "signal.signal(signal.SIGTERM, leave); print('ready', flush=True)\n"
                + "while True: signal.pause()")
        #expect(line(output) == "ready")
        signal(SIGUSR1) { _ in }
        defer { signal(SIGUSR1, SIG_DFL) }
        let waiting = pthread_self()
        let isOver = Mutex(false)
        let isQuiet = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            while !isOver.withLock({ $0 }) {
                pthread_kill(waiting, SIGUSR1)
                usleep(5_000)
            }
            isQuiet.signal()
        }
        #expect(child.end(within: 20) == .exited(7))
        isOver.withLock { $0 = true }
        isQuiet.wait()
    }

    @Test func `releasing the value ends its program`() throws {
        var running: (ChildProcess, OutputPipe)? = try python(
            "print('ready', flush=True); import time; time.sleep(100)")
        let output = try #require(running).1
        #expect(line(output) == "ready")
        running = nil
        #expect(text(output) == "")
    }

    @Test func `a program does not outlive this process, however it ends`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            let started = try ChildProcess(
                path: "/usr/bin/python3", arguments: ["-c", "import time; time.sleep(100)"], environment: [:],
                descriptors: [nil, nil, nil])
            // Nothing of it may be released before.
            withExtendedLifetime(started) {
                let path = "/tmp/child-process-test-\(getppid())"
                let file = fopen(path, "w")
                fputs("\(started.id)", file)
                fclose(file)
                kill(getpid(), SIGKILL)
            }
        }
        let path = "/tmp/child-process-test-\(getpid())"
        defer { unlink(path) }
        let file = try #require(fopen(path, "r"))
        var digits = [UInt8](repeating: 0, count: 16)
        let count = fread(&digits, 1, 16, file)
        fclose(file)
        let child = try #require(pid_t(String(decoding: digits.prefix(count), as: UTF8.self)))
        let deadline = ContinuousClock.now + .seconds(20)
        while isRunning(child), ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(5)) }
        #expect(!isRunning(child))
    }

    /// Whether a process runs. A zombie does not.
    private func isRunning(_ process: pid_t) -> Bool {
        guard let file = fopen("/proc/\(process)/stat", "r") else { return false }
        defer { fclose(file) }
        var line = [UInt8](repeating: 0, count: 128)
        let count = fread(&line, 1, line.count, file)
        let text = String(decoding: line.prefix(count), as: UTF8.self)
        return count > 0 && !text.contains(") Z ")
    }
}

@Suite struct CommandWordsTests {
    @Test func `a command is split like in a shell`() {
        #expect(
            CommandWords.split("python3  clock.py\t--size 640x480 ") == ["python3", "clock.py", "--size", "640x480"])
        #expect(CommandWords.split(#"a 'b c' "d e" f\ g "#) == ["a", "b c", "d e", "f g"])
        #expect(CommandWords.split(#"a"b"'c'd "" ''"#) == ["abcd", "", ""])
        #expect(CommandWords.split(#""\"\\\n\$HOME" '\n' $HOME *"#) == [#""\\n$HOME"#, #"\n"#, "$HOME", "*"])
        #expect(CommandWords.split("") == [])
        #expect(CommandWords.split("a 'b") == nil)
        #expect(CommandWords.split("a \"b") == nil)
        #expect(CommandWords.split("a \\") == nil)
    }

    @Test func `a program is found like in a shell`() {
        #expect(ProgramSearch.find("python3", path: "/nonexistent:/usr/bin") == "/usr/bin/python3")
        #expect(ProgramSearch.find("python3", path: "/nonexistent") == nil)
        #expect(ProgramSearch.find("/usr/bin/python3", path: nil) == "/usr/bin/python3")
        #expect(ProgramSearch.find("/usr/bin", path: nil) == nil)
        #expect(ProgramSearch.find("/etc/passwd", path: nil) == nil)
        #expect(ProgramSearch.find("", path: nil) == nil)
    }
}
