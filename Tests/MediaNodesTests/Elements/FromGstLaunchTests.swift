import Foundation
import Glibc
import GraphFile
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    /// Every graph of docs/from-gst-launch.md is read, planned and run.
    @Suite struct FromGstLaunchTests {
        struct Block: Sendable, CustomTestStringConvertible {
            let title: String
            let text: String
            let line: Int

            var testDescription: String { title }
        }

        private static let page = (try? Checkout.text("docs/from-gst-launch.md")) ?? ""

        static let blocks: [Block] = {
            var blocks: [Block] = []
            var title = ""
            var lines: [Substring]?
            for (number, line) in page.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                if line.hasPrefix("## ") { title = String(line.dropFirst(3)) }
                if line == "```yaml" {
                    lines = []
                } else if line == "```", let block = lines {
                    blocks.append(
                        Block(title: title, text: block.joined(separator: "\n"), line: number + 1 - block.count))
                    lines = nil
                } else {
                    lines?.append(line)
                }
            }
            return blocks
        }()

        @Test("The page has ten graphs, each after a line of gst-launch")
        func count() {
            #expect(Self.blocks.count == 10)
            let lines = Self.page.split(separator: "\n").count { $0.hasPrefix("    gst-launch-1.0 ") }
            #expect(lines >= Self.blocks.count)
        }

        @Test("A graph of the page runs", arguments: blocks)
        func runs(block: Block) async throws {
            let display = try #require(VirtualDisplay())
            defer { withExtendedLifetime(display) {} }
            let folder = TemporaryFolder()
            let values = ["clip": Checkout.clip, "folder": folder.path, "port": "\(freePort())"]
            let reading = GraphReading(
                block.text.utf8, values: values.filter { block.text.contains("${\($0.key):") },
                catalogue: NodeRegistry.builtIn)
            #expect(reading.problems.isEmpty, "\(reading.report(path: "from-gst-launch.md"))")
            let failures = Collected<MediaError>()
            var bindings = NodeBindings()
            bindings.events = { event in
                if case .failed(let error) = event { failures.append(error) }
            }
            let pipeline = try await MediaPipeline(reading.document.graph, bindings: bindings)
            let watch = pipeline.watch()
            try await pipeline.start()
            await eventually("every node of \(block.title) is passed") {
                let nodes = watch.sample()
                return !failures.all.isEmpty || nodes.allSatisfy { $0.framesIn + $0.framesOut > 0 }
            }
            await pipeline.stop()
            #expect(failures.all.isEmpty, "\(failures.all)")
            if block.title.contains("recording") {
                #expect(try MediaFile.inspect(folder.path + "/out.mkv").hasAudio)
            }
        }
    }
}

/// A free UDP port.
private func freePort() -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = bind(descriptor, $0, length)
            getsockname(descriptor, $0, &length)
        }
    }
    return Int(UInt16(bigEndian: address.sin_port))
}
