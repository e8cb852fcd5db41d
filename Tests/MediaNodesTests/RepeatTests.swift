import Glibc
import MediaGraph
import MediaNodes
import Testing

extension MediaNodesTests {
    @Suite struct RepeatTests {
        /// What this process holds now.
        struct Holdings {
            let threads: Int
            let descriptors: Int
            let kilobytes: Int

            static var now: Holdings {
                Holdings(
                    threads: count("/proc/self/task"), descriptors: count("/proc/self/fd"),
                    kilobytes: residentKilobytes)
            }

            private static func count(_ folder: String) -> Int {
                guard let directory = opendir(folder) else { return -1 }
                defer { closedir(directory) }
                var entries = 0
                while readdir(directory) != nil { entries += 1 }
                return entries - 2
            }

            private static var residentKilobytes: Int {
                guard let file = fopen("/proc/self/statm", "r") else { return -1 }
                defer { fclose(file) }
                var line = [UInt8](repeating: 0, count: 128)
                let length = fread(&line, 1, line.count, file)
                let fields = String(decoding: line.prefix(length), as: UTF8.self).split(separator: " ")
                return fields.count > 1 ? (Int(fields[1]) ?? -1) * 4 : -1
            }
        }

        private func cycle() async throws {
            let loopback = try Loopback(codec: .vp8, frames: 0)
            try await loopback.start()
            await eventually("three pictures") { loopback.rendered.count >= 3 }
            await loopback.stop()
        }

        private func fileCycle() async throws {
            let pipeline = try MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("clip", path: clip)
                        Node.null("video")
                    }
                    Chain(from: "clip", port: "audio") { Node.null("sound") }
                })
            try await pipeline.start()
            await pipeline.stop()
        }

        @Test("A hundred starts and stops leave no thread, no descriptor and no memory behind")
        func hundredCycles() async throws {
            // The allocator takes some rounds to settle on its pools.
            for _ in 0..<40 { try await cycle() }
            for _ in 0..<5 { try await fileCycle() }
            let before = Holdings.now
            for _ in 0..<100 { try await cycle() }
            let after = Holdings.now
            for _ in 0..<20 { try await fileCycle() }
            await eventually("threads to end") { Holdings.now.threads <= before.threads + 4 }
            let last = Holdings.now
            print("holdings before", before, "after", after, "after files", last)
            #expect(last.descriptors <= before.descriptors + 2)
            #expect(last.threads <= before.threads + 4)
            // One raw frame kept by each cycle would be 46 MB.
            #expect(after.kilobytes < before.kilobytes + 12_000)
            #expect(last.kilobytes < before.kilobytes + 40_000)
        }

        /// Threads of the test pattern's source; GStreamer names threads after elements.
        private var patternThreads: Int {
            guard let directory = opendir("/proc/self/task") else { return -1 }
            defer { closedir(directory) }
            var found = 0
            while let entry = readdir(directory) {
                let name = withUnsafePointer(to: entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                guard let file = fopen("/proc/self/task/\(name)/comm", "r") else { continue }
                defer { fclose(file) }
                var line = [UInt8](repeating: 0, count: 32)
                let length = fread(&line, 1, line.count, file)
                found += String(decoding: line.prefix(length), as: UTF8.self).hasPrefix("videotestsrc") ? 1 : 0
            }
            return found
        }

        @Test("A pipeline that is let go while it runs stops by itself")
        func letGo() async throws {
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { _ in }
            let graph = MediaGraph {
                Chain {
                    Node.testPattern()
                    Node.videoEncoder()
                    Node.rtpOutput("video")
                }
            }
            var pipeline: MediaPipeline? = try MediaPipeline(graph, bindings: bindings)
            try await pipeline?.start()
            #expect(patternThreads == 1)
            pipeline = nil
            await eventually("its threads to end") { patternThreads == 0 }
        }

        @Test("After a failed start nothing is left running")
        func failedStart() async throws {
            try await fileCycle()
            let before = Holdings.now
            for _ in 0..<10 {
                let pipeline = try MediaPipeline(
                    MediaGraph {
                        Chain {
                            Node.file(path: "/nowhere.mp4")
                            Node.null()
                        }
                    })
                await #expect(throws: MediaError.self) { try await pipeline.start() }
            }
            await eventually("threads to end") { Holdings.now.threads <= before.threads + 1 }
            #expect(Holdings.now.descriptors <= before.descriptors + 1)
        }
    }
}
