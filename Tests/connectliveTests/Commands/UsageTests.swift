import Foundation
import Testing
import TestSupport

@Suite struct UsageTests {
    @Test func `the version is printed`() throws {
        let result = try CommandLineTool.run(["--version"], folder: TemporaryFolder())
        #expect(result.status == 0)
        #expect(result.output.trimmingCharacters(in: .whitespacesAndNewlines).contains("."))
    }

    @Test(arguments: [
        "demo", "serve", "publish", "view", "devices", "doctor", "validate", "graph", "nodes", "schema",
        "run", "plan", "top", "apply", "set",
    ])
    func `every command describes each of its options in one line`(command: String) throws {
        let result = try CommandLineTool.run([command, "--help"], folder: TemporaryFolder())
        #expect(result.status == 0)
        let lines = result.output.split(separator: "\n")
        let flags = lines.indices.filter { lines[$0].hasPrefix("  --") || lines[$0].hasPrefix("  -h") }
        #expect(!flags.isEmpty)
        for index in flags {
            // The parser prints the text beside the flag, or on the next line below a long one.
            let beside = lines[index].dropFirst(26).contains { $0 != " " }
            let next = lines.index(after: index) < lines.endIndex ? lines[index + 1] : ""
            #expect(beside || next.hasPrefix("                          "), "no help: \(lines[index])")
        }
    }

    @Test(arguments: [
        ["dance"], ["publish"], ["view"],
        ["publish", "--room", "r", "--file", "a", "--test-pattern"],
        ["publish", "--room", "r", "--test-pattern", "--no-such"],
        ["publish", "--room", "r", "--test-pattern", "--size", "big"],
        ["publish", "--room", "r", "--test-pattern", "--codec", "mp3"],
        ["publish", "--room", "r", "--test-pattern", "--fps", "0"],
        ["serve", "--listen", "127.0.0.1:99999"],
        ["publish", "--room", "r", "--test-pattern", "--seconds", "inf"], ["view", "--room", "r", "--seconds", "nan"],
        ["demo", "--seconds", "-1"], ["demo", "--room", "a b"],
    ])
    func `an invalid command line exits with 2 and a message`(arguments: [String]) throws {
        let result = try CommandLineTool.run(arguments, folder: TemporaryFolder())
        #expect(result.status == 2, "\(result.error)")
        #expect(result.error.hasPrefix("connectlive: "))
    }

    @Test(arguments: [
        (["valdate", "x"], "There is no command \"valdate\"; did you mean \"validate\"?"),
        (["devices", "unbnd", "front"], "There is no command \"unbnd\"; did you mean \"unbind\"?"),
        (["camera", "rec"], "There is no command \"rec\"; did you mean \"record\"?"),
        (["dance", "--fast"], "There is no command \"dance\"."),
    ])
    func `an unknown command is reported with the one that was probably meant`(
        arguments: [String], sentence: String
    ) throws {
        let result = try CommandLineTool.run(arguments, folder: TemporaryFolder())
        #expect(result.status == 2)
        let parent = ["devices", "camera"].first { $0 == arguments[0] }.map { " \($0)" } ?? ""
        #expect(result.error == "connectlive: \(sentence)\n  See 'connectlive\(parent) --help' for all commands.\n")
    }

    @Test(arguments: [["rooms", "remove", "kitchen"], ["room", "kick", "kitchen"]])
    func `a missing argument is named, also after another name of the command`(arguments: [String]) throws {
        let result = try CommandLineTool.run(arguments, folder: TemporaryFolder())
        #expect(result.status == 2)
        #expect(result.error.hasPrefix("connectlive: Missing expected argument '<participant>'"), "\(result.error)")
    }

    @Test(arguments: [
        (["--file", Checkout.clip, "--size", "640x480"], "Leave out --size: --file does not use it."),
        (
            ["--file", Checkout.clip, "--size", "640x480", "--fps", "5", "--mic", "nosuch"],
            "Leave out --size, --fps and --mic: --file does not use them."
        ),
        (["--test-pattern", "--mic", "nosuch"], "Leave out --mic: --test-pattern does not use it."),
        (["--test-pattern", "--mic", "auto"], "Leave out --mic: --test-pattern does not use it."),
        (["--file", Checkout.clip, "--controls", "brightness=9"], "Leave out --controls: --file does not use it."),
    ])
    func `options that the source does not use are refused`(arguments: [String], sentence: String) throws {
        let result = try CommandLineTool.run(["publish", "--room", "r"] + arguments, folder: TemporaryFolder())
        #expect(result.status == 2, "\(result.error)")
        #expect(result.error.hasPrefix("connectlive: \(sentence)\n"), "\(result.error)")
    }

    @Test(arguments: [
        (
            ["publish", "--size", "321x243"],
            "Write WIDTHxHEIGHT, each an even number from 16 to 16383, such as 640x480."
        ),
        (["publish", "--size", "big"], "Write WIDTHxHEIGHT, each an even number from 16 to 16383, such as 640x480."),
        (
            ["publish", "--room", "r", "--controls", "brightness"],
            "\"brightness\" is not a control with a value. Write name=number, such as auto_exposure=1,focus_absolute=30."
        ),
        (["publish", "--bitrate", "fast"], "Write 30000 to 50000000 bits per second, such as 800k or 2M."),
        (["publish", "--bitrate", "51M"], "Write 30000 to 50000000 bits per second, such as 800k or 2M."),
        (["publish", "--bitrate", "2m"], "Write 30000 to 50000000 bits per second, such as 800k or 2M."),
        (["serve", "--listen", "127.0.0.1:99999"], "a literal address of this machine"),
        (["demo", "--seconds", "0"], "--seconds must be more than 0 and at most 31536000, which is a year."),
        (["demo", "--seconds", "-1"], "--seconds must be more than 0 and at most 31536000, which is a year."),
        (
            ["view", "--room", "r", "--snapshot", "a.bmp"],
            "--snapshot is \"a.bmp\"; write a path that ends in .png, .jpg or .jpeg."
        ),
        (["demo", "--listen", ":80"], "a literal address of this machine"),
        (["serve", "--listen", "*:7990"], "a literal address of this machine"),
        (["serve", "--listen", "127.1:7990"], "a literal address of this machine"),
        (["serve", "--listen", "[fd00::5"], "a literal address of this machine"),
        (
            ["serve", "--listen", "0.0.0.0", "--public-address", "fe80::1"],
            "--public-address \"fe80::1\" is not an IPv4 or IPv6 address that other machines reach."
        ),
        (
            ["serve", "--listen", "0.0.0.0", "--public-address", ""],
            "--public-address \"\" is not an IPv4 or IPv6 address that other machines reach."
        ),
        (
            ["serve", "--listen", "192.0.2.1", "--public-address", "[2001:db8::5]"],
            "--public-address \"2001:db8::5\" needs a --listen address of its own family, such as [::]."
        ),
        (
            ["serve", "--listen", "[fd00::5]", "--public-address", "203.0.113.5"],
            "--public-address \"203.0.113.5\" needs a --listen address of its own family, such as 0.0.0.0."
        ),
        (["serve", "--listen", "224.0.0.1"], "a literal address of this machine"),
        (["serve", "--listen", "255.255.255.255:7880"], "a literal address of this machine"),
        (["serve", "--listen", "[ff02::1]"], "a literal address of this machine"),
    ])
    func `a refused value is reported with its form`(arguments: [String], sentence: String) throws {
        let result = try CommandLineTool.run(arguments, folder: TemporaryFolder())
        #expect(result.status == 2, "\(result.error)")
        #expect(result.error.contains(sentence), "\(result.error)")
    }

    @Test func `publish refuses a control that its camera does not take`() throws {
        let folder = TemporaryFolder()
        let camera = try CameraFile.writeAdjustable(to: folder)
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--camera", camera, "--mic", "none", "--controls", "brightness=9,contrast=10"],
            folder: folder)
        #expect(result.status == 1)
        #expect(result.error.contains("[camera.control]"), "\(result.error)")
        #expect(result.error.contains("must be from 0 to 9, not 10"), "\(result.error)")
    }

    @Test(arguments: ["800k", "2M", "2.5M", "1000000"])
    func `a bitrate can be written like in a graph file`(bitrate: String) throws {
        // The command line is parsed before the file is opened.
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--file", "nothing.mp4", "--bitrate", bitrate], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("[file.not-found]"), "\(result.error)")
    }

    @Test func `a room name with a space is refused with a suggestion`() throws {
        let result = try CommandLineTool.run(["view", "--room", "my room"], folder: TemporaryFolder())
        #expect(result.status == 2)
        #expect(result.error.contains("[1301]"))
        #expect(result.error.contains("my-room"))
    }

    @Test func `devices are listed as text and as JSON`() throws {
        let folder = TemporaryFolder()
        let text = try CommandLineTool.run(["devices"], folder: folder)
        #expect(text.status == 0)
        #expect(text.output.contains("Cameras"))
        #expect(text.error.isEmpty)
        let json = try CommandLineTool.run(["devices", "--json"], folder: folder)
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect(object?.keys.sorted() == ["cameras", "libraryCameras", "microphones", "names", "speakers"])
    }
}
