import Foundation
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct FileConflictTests {
        private func recording(_ paths: String...) -> MediaGraph {
            MediaGraph {
                Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 30)
                for (index, path) in paths.enumerated() {
                    Node.recorder("recorder\(index)", path: path)
                    Chain(from: "pattern", port: "video") { Join("recorder\(index)", port: "video") }
                }
            }
        }

        @Test("Two recordings to one file are refused, through any links")
        func twoWriters() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/a.mkv"
            let later = await failure(of: recording(path, folder.path + "/./a.mkv"))
            #expect(later?.code == MediaError.Code.graphInvalid)
            #expect(later?.message.contains("both write") == true)
            symlink("a.mkv", folder.path + "/dangling.mkv")
            let dangling = await failure(of: recording(path, folder.path + "/dangling.mkv"))
            #expect(dangling?.code == MediaError.Code.fileConflict, "of a file that is yet to be made")
            #expect(dangling?.message.contains("both write") == true, "the plan tells, before anything is claimed")
            writeFile([1, 2, 3], to: path)
            link(path, folder.path + "/hard.mkv")
            let hard = await failure(of: recording(path, folder.path + "/hard.mkv"))
            #expect(hard?.code == MediaError.Code.fileConflict)
            #expect(hard?.message.contains("both write") == true)
            #expect(fileSize(path) == 3, "nothing was written")
        }

        @Test("Two HLS recordings that would write the same segments are refused")
        func sameSegments() async throws {
            let folder = TemporaryFolder()
            let graph = MediaGraph {
                Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 30)
                Node("recorder", name: "one", settings: ["path": .text(folder.path + "/a"), "format": "hls"])
                Node("recorder", name: "two", settings: ["path": .text(folder.path + "/a.m3u8")])
                Chain(from: "pattern", port: "video") { Join("one", port: "video") }
                Chain(from: "pattern", port: "video") { Join("two", port: "video") }
            }
            let error = await failure(of: graph)
            #expect(error?.code == MediaError.Code.graphInvalid)
            #expect(error?.message.contains("both write \(folder.path)/a-00000.ts") == true, "\(error?.message ?? "")")
        }

        @Test("Two HLS recordings with one path are one conflict, not one for each file")
        func oneConflict() {
            let problems = recording("/tmp/a.m3u8", "/tmp/a.m3u8").validate(with: NodeRegistry.builtIn)
            #expect(problems.map(\.message).count { $0.contains("both write") } == 1, "\(problems)")
        }

        @Test("A start that fails leaves an earlier recording unchanged", arguments: ["a.mkv", "a.mp4", "a.m3u8"])
        func failedStart(name: String) async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/" + name
            writeFile([1, 2, 3], to: path)
            writeFile([1, 2, 3], to: folder.path + "/a-00000.ts")
            let graph = MediaGraph {
                Chain {
                    Node.rtpInput("silent", codec: .h264)
                    Node.recorder("recorder", path: path)
                }
                // Sources start last, when all sinks have opened their files.
                Chain {
                    Node("element:filesrc", name: "nowhere", settings: ["location": "/nowhere/file"])
                    Node("element:fakesink", name: "rest")
                }
            }
            #expect(await failure(of: graph)?.node == "nowhere")
            #expect(fileSize(path) == 3)
            #expect(fileSize(folder.path + "/a-00000.ts") == 3)
        }

        @Test("A recording over its own input file is refused, and the file stays intact")
        func ownSource() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/clip.mp4"
            try FileManager.default.copyItem(atPath: Checkout.clip, toPath: path)
            symlink(path, folder.path + "/again.mp4")
            let size = fileSize(path)
            let graph = MediaGraph {
                Chain {
                    Node.file(path: path)
                    Node.recorder("copy", path: folder.path + "/again.mp4")
                }
            }
            let error = await failure(of: graph)
            #expect(error?.code == MediaError.Code.fileConflict)
            #expect(error?.node == "copy")
            #expect(error?.message.contains("which \"file\" reads") == true, "\(error?.message ?? "")")
            #expect(fileSize(path) == size)
        }

        @Test("While one pipeline reads a file, no other may write it", arguments: [true, false])
        func otherReader(starts: Bool) async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/clip.mp4"
            try FileManager.default.copyItem(atPath: Checkout.clip, toPath: path)
            let size = fileSize(path)
            let reader = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file(path: path)
                        Node.null("end")
                    }
                })
            if starts { try await reader.start() }
            let refused = await failure(of: recording(path))
            #expect(refused?.code == MediaError.Code.fileConflict)
            #expect(fileSize(path) == size)
            await reader.stop()
            #expect(await failure(of: recording(path)) == nil)
        }

        @Test("A running recording claims its file within its graph and against others")
        func underWay() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/a.mkv"
            let pipeline = try await MediaPipeline(recording(path))
            try await pipeline.start()
            func frames() -> Int { pipeline.statistics.recorders["recorder0"]?.frames ?? 0 }
            await eventually("pictures") { frames() >= 5 }
            link(path, folder.path + "/hard.mkv")
            await #expect {
                try await pipeline.apply(recording(path, folder.path + "/hard.mkv"))
            } throws: { error in
                (error as? MediaError)?.code == MediaError.Code.fileConflict
            }
            let second = try await MediaPipeline(recording(path))
            await #expect {
                try await second.start()
            } throws: { error in
                (error as? MediaError)?.code == MediaError.Code.fileConflict
            }
            #expect(second.shortfalls.isEmpty, "the file is another's, and not empty")
            let before = frames()
            await eventually("more frames") { frames() >= before + 5 }
            await pipeline.stop()
            #expect(DecodedRecording(path).numbers.count == frames())
            // Its end releases the file.
            #expect(await failure(of: recording(path)) == nil)
        }

        @Test("A named pipe is not opened to check whether it can be written, because its reader would notice")
        func namedPipe() {
            let folder = TemporaryFolder()
            let path = folder.path + "/pipe"
            #expect(mkfifo(path, 0o600) == 0)
            let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            defer { close(reader) }
            #expect(FileAccess.obstacle(path) == nil)
            var events = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
            #expect(poll(&events, 1, 0) == 0, "nobody has opened and closed it")
        }
    }
}
