// A conference in the terminal or in a window: conference [ROOM] [NAME] [--window] [--test-pattern]
// Start `connectlive serve` on the same machine first.
import Foundation

@main @MainActor struct Program {
    static func main() {
        var words = CommandLine.arguments.dropFirst().filter { !$0.hasPrefix("--") }
        let options = Set(CommandLine.arguments.dropFirst().filter { $0.hasPrefix("--") })
        guard words.count <= 2, options.isSubset(of: ["--window", "--test-pattern"]) else {
            fail("usage: conference [ROOM] [NAME] [--window] [--test-pattern]")
        }
        words += ["lobby", NSUserName()].dropFirst(words.count)
        guard let surface = surface(inWindow: options.contains("--window")) else { return }
        let conference = Conference(
            roomName: words[0], name: words[1], usesTestPattern: options.contains("--test-pattern"))
        let signals = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
            source.setEventHandler { MainActor.assumeIsolated { conference.end() } }
            source.resume()
            return source
        }
        let controls = Controls(conference)
        conference.open()
        while conference.stage != .ended {
            for key in surface.keys() { controls.press(key) }
            surface.draw(controls)
            // The callbacks of the SDK come meanwhile.
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.05))
        }
        surface.close()
        withExtendedLifetime(signals) {}
    }

    /// Nil after a message if there is none.
    private static func surface(inWindow: Bool) -> (any Surface)? {
        if !inWindow {
            if let terminal = Terminal() { return terminal }
            fail("Standard input and output are no terminal. Start the conference in one, or with --window.")
        }
        #if canImport(CSDL)
            do { return try Window(title: "Conference") } catch { fail("\(error)") }
        #else
            fail("This build has no window. Install libsdl2-ttf-dev, and build again.")
        #endif
    }

    private static func fail(_ message: String) -> Never {
        FileHandle.standardError.write(Data("\(message)\n".utf8))
        exit(2)
    }
}
