import Foundation
import TestFixtures
import Testing
import TestSupport

/// The `connectlive` of this build, run as a user would run it.
final class CommandLineTool: RunningProgram {
    /// The path of this build's tool.
    static var path: String {
        get throws {
            let path = BuiltPackage.program("connectlive").path
            try #require(FileManager.default.isExecutableFile(atPath: path), "no connectlive at \(path)")
            return path
        }
    }

    /// - Parameter errors: a pipe for standard error that nobody reads. Nil collects it.
    init(
        _ arguments: [String], folder: TemporaryFolder, environment: [String: String] = [:], errors: Pipe? = nil
    ) throws {
        try super.init(Self.path, arguments, folder: folder, environment: environment, errors: errors)
    }

    /// Runs the tool to its end. After the given seconds, ends the tool and fails the test.
    static func run(
        _ arguments: [String], folder: TemporaryFolder, environment: [String: String] = [:], seconds: Double = 30
    ) throws -> Result {
        try CommandLineTool(arguments, folder: folder, environment: environment).finish(seconds: seconds)
    }

    /// Runs `view` until its status shows rendered frames.
    static func view(
        _ arguments: [String], folder: TemporaryFolder, environment: [String: String] = [:]
    ) throws -> Result {
        let viewer = try CommandLineTool(["view"] + arguments, folder: folder, environment: environment)
        _ = try viewer.waitForText("frames/s", seconds: 60)
        viewer.interrupt()
        return try viewer.finish(seconds: 20)
    }
}

/// A server of its own on a free port, in a folder of its own.
final class TestServer {
    let folder: TemporaryFolder
    let tool: CommandLineTool
    let url: String

    init(_ arguments: [String] = [], environment: [String: String] = [:]) throws {
        folder = TemporaryFolder()
        tool = try CommandLineTool(
            ["serve", "--listen", "127.0.0.1:0"] + arguments, folder: folder, environment: environment)
        let line = try tool.waitForText("Serving rooms at ")
        url = String(line.split(separator: " ").last ?? "")
        _ = try tool.waitForText("In a browser")
    }

    var port: Int { Int(url.split(separator: ":").last ?? "") ?? 0 }
    /// The web page's address, with a slash at its end.
    var page: String { "\(url.hasPrefix("https") ? "https" : "http")://127.0.0.1:\(port)/" }
}
