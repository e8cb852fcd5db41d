import Foundation
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

/// All tests that need a kernel of their own. Serialized, because each loads and unloads drivers.
@Suite(
    .serialized,
    .enabled(
        if: getenv("CONNECTLIVE_GUEST") != nil,
        "cameras are tried in a guest, whose kernel has drivers that make them up: make guest"))
struct GuestTests {}

/// A driver of the guest's kernel, loaded for the lifetime of the value.
final class Driver {
    private let name: String
    private var isLoaded = false

    init(_ name: String, _ parameters: String...) throws {
        self.name = name
        try load(parameters)
    }

    func load(_ parameters: [String]) throws {
        try Program.run("modprobe", ["-d", try Program.modules, name] + parameters)
        isLoaded = true
    }

    /// The descriptors of cameras, and where in the kernel the threads are that wait there without end.
    private static let holders = """
        ls -l /proc/[0-9]*/fd 2>/dev/null | grep -E '^/proc|/dev/video' | grep -B1 /dev/video
        for task in /proc/[0-9]*/task/*; do
            grep -q '^State:.*D' $task/status 2>/dev/null && { echo $task; cat $task/comm $task/stack; }
        done
        dmesg | tail -n 40
        """

    /// Reports a device that is still open, because the kernel then keeps the driver.
    func unload() {
        guard isLoaded else { return }
        isLoaded = false
        do {
            try Program.run("modprobe", ["-r", "-d", try Program.modules, name])
        } catch {
            let holders = (try? Program.outcome("sh", ["-c", Self.holders]).1) ?? ""
            Issue.record("\(name) is still in use: \(error)\n\(holders)")
        }
    }

    deinit { unload() }
}

/// Programs of the system.
enum Program {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static var modules: String {
        get throws { try #require(getenv("GUEST_MODULES").map { String(cString: $0) }) }
    }

    static func start(_ name: String, _ arguments: [String], output: Any? = FileHandle.nullDevice) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        return process
    }

    /// Runs a program to its end, for at most `seconds`. Returns its output. Throws if it failed.
    @discardableResult
    static func run(_ name: String, _ arguments: [String], seconds: Int = 60) throws -> String {
        let (status, said) = try outcome(name, arguments, seconds: seconds)
        guard status == 0 else { throw Failure(description: "\(name) \(arguments) ended with \(status): \(said)") }
        return said
    }

    static func outcome(_ name: String, _ arguments: [String], seconds: Int = 60) throws -> (Int32, String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["timeout", "-k", "5", "\(seconds)", name] + arguments
        // A program that waits for a driver cannot be killed.
        let outcome = try process.runToEnd(within: Double(seconds) + 15)
        return (outcome.status, outcome.output)
    }
}

/// vivid: a driver of virtual cameras that can be made to fail.
final class Vivid {
    let driver: Driver
    private let parameters: [String]

    enum Input: Int {
        case webcam = 0
        case sVideo = 2
        case hdmi = 3
    }

    /// Only capture devices with one input each.
    init(_ count: Int = 1, _ input: Input = .webcam) throws {
        parameters =
            ["n_devs=\(count)"]
            + ["node_types=0x1", "num_inputs=1", "input_types=\(input.rawValue)"].map { parameter in
                let value = parameter.drop { $0 != "=" }.dropFirst()
                return parameter + String(repeating: ",\(value)", count: count - 1)
            }
        driver = try Driver("vivid")
        driver.unload()
        try plugIn()
    }

    func plugIn() throws { try driver.load(parameters) }
    func unplug() { driver.unload() }

    /// Takes the driver from the device, or gives it back, also while the camera is read.
    static func bind(_ isBound: Bool) throws {
        let file = "/sys/bus/platform/drivers/vivid/\(isBound ? "bind" : "unbind")"
        try Data("vivid.0".utf8).write(to: URL(fileURLWithPath: file))
    }

    /// Unloads and loads the driver of a camera that nobody reads. The modules that it needs stay loaded.
    func reload() throws {
        try Program.run("rmmod", ["vivid"])
        try plugIn()
    }

    static var isRead: Bool {
        get throws { try String(contentsOfFile: "/sys/module/vivid/refcnt", encoding: .utf8) != "0\n" }
    }

    subscript(index: Int) -> String {
        get throws {
            let name = String(format: "vivid-%03d-vid-cap", index)
            return try #require(Camera.path(named: name), "vivid has not made \(name)")
        }
    }
}

/// Another program that reads a camera.
final class Reader {
    private let process: Process

    init(of path: String) throws {
        process = try Program.start("v4l2-ctl", ["-d", path, "--stream-mmap", "--stream-count", "100000"])
    }

    func end() {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// The kernel's view of a camera. Our own code only reports that it is in use.
enum Camera {
    static func isRefused(_ path: String) -> Bool {
        do throws(MediaError) {
            _ = try Devices.camera(path)
            return false
        } catch {
            return error.code == MediaError.Code.cameraBusy
        }
    }

    static func path(named name: String) -> String? {
        let folder = "/sys/class/video4linux"
        let found = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return found.filter { $0.hasPrefix("video") }.sorted()
            .first { (try? String(contentsOfFile: "\(folder)/\($0)/name", encoding: .utf8)) == name + "\n" }
            .map { "/dev/\($0)" }
    }

    static func control(_ name: String, of path: String) throws -> Int {
        let said = try Program.run("v4l2-ctl", ["-d", path, "-C", name])
        let value = said.split(separator: ":").last?.trimmingCharacters(in: .whitespacesAndNewlines)
        return try #require(value.flatMap { Int($0.prefix { $0 == "-" || $0.isNumber }) }, "\(said)")
    }

    static func set(_ name: String, _ value: Int, of path: String) throws {
        try Program.run("v4l2-ctl", ["-d", path, "-c", "\(name)=\(value)"])
    }
}
