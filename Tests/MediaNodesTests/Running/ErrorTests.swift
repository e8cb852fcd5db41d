import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct ErrorTests {
        private func failure(of graph: MediaGraph) async -> MediaError? {
            do {
                let pipeline = try await MediaPipeline(graph)
                try await pipeline.start()
                await pipeline.stop()
                return nil
            } catch {
                return error as? MediaError
            }
        }

        private func playing(_ path: String) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.file("clip", path: path)
                    Node.null()
                }
            }
        }

        /// A WAV file with a tenth of a second of silence.
        private func silentWAV() -> [UInt8] {
            let samples = 800
            func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> ($0 * 8) & 0xff) } }
            var bytes: [UInt8] = Array("RIFF".utf8) + little(36 + samples * 2, 4) + Array("WAVEfmt ".utf8)
            bytes += little(16, 4) + little(1, 2) + little(1, 2) + little(8000, 4) + little(16000, 4)
            bytes += little(2, 2) + little(16, 2) + Array("data".utf8) + little(samples * 2, 4)
            return bytes + [UInt8](repeating: 0, count: samples * 2)
        }

        @Test("A missing file is reported by name, before and at the start")
        func missingFile() async {
            let path = "/nowhere/clip.mp4"
            let inspected = #expect(throws: MediaError.self) { try MediaFile.inspect(path) }
            #expect(inspected?.code == "file.not-found")
            #expect(inspected?.description.contains(path) == true)
            #expect(inspected?.description.hasSuffix("[file.not-found]") == true)
            let started = await failure(of: playing(path))
            #expect(started?.code == "file.not-found")
            #expect(started?.message.contains(path) == true)
        }

        @Test("The plan refuses an odd size for H.264 with a fix")
        func oddSize() async {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 320, height: 180)
                    Node("crop", settings: ["left": 1])
                    Node.videoEncoder("encoder", codec: .h264)
                    Node.null()
                }
            }
            let error = await #expect(throws: MediaError.self) { try await MediaPipeline.plan(graph) }
            #expect(error?.code == MediaError.Code.formatClash)
            #expect(error?.node == "encoder")
            #expect(error?.message.contains("319x180") == true, "\(String(describing: error))")
        }

        @Test("A file without video is refused, before and at the start")
        func noVideo() async {
            let folder = TemporaryFolder()
            let path = folder.path + "/sound.wav"
            writeFile(silentWAV(), to: path)
            #expect(throws: MediaError.self) { try MediaFile.inspect(path) }
            #expect((#expect(throws: MediaError.self) { try MediaFile.inspect(path) })?.code == "file.no-video")
            #expect(await failure(of: playing(path))?.code == "file.no-video")
        }

        @Test("A file without media, and a folder, are unreadable")
        func unreadable() async {
            let folder = TemporaryFolder()
            let path = folder.path + "/notes.txt"
            writeFile(Array("These are notes, not frames.\n".utf8), to: path)
            let text = #expect(throws: MediaError.self) { try MediaFile.inspect(path) }
            #expect(text?.code == "file.unreadable" || text?.code == "file.no-video")
            let directory = #expect(throws: MediaError.self) { try MediaFile.inspect(folder.path) }
            #expect(directory?.code == "file.unreadable")
            for bad in [path, folder.path] {
                let started = await failure(of: playing(bad))
                #expect(started?.code.hasPrefix("file.") == true)
                #expect(started?.message.contains(bad) == true)
            }
        }

        @Test("A file is inspected: size, rate, audio, duration")
        func inspect() throws {
            let info = try MediaFile.inspect(Checkout.clip)
            #expect(info.width == 1280 && info.height == 720)
            #expect(info.framesPerSecond == 25)
            #expect(info.hasAudio)
            #expect(abs(info.duration - 5.28) < 0.1)
        }

        @Test("A missing camera that is not waited for is reported by name")
        func absentCamera() async {
            let graph = MediaGraph {
                Chain {
                    Node.camera(device: "/dev/video97", away: "end")
                    Node.null()
                }
            }
            let error = await failure(of: graph)
            #expect(error?.code == "camera.absent")
            #expect(error?.message.contains("/dev/video97") == true)
        }

        @Test("A device that is not a camera is refused")
        func notACamera() async {
            let graph = MediaGraph {
                Chain {
                    Node.camera(device: "/dev/null")
                    Node.null()
                }
            }
            let error = await failure(of: graph)
            #expect(error?.code == "camera.unusable")
            #expect(error?.message.contains("is not a camera") == true)
        }

        @Test("An invalid graph is refused with all its problems")
        func invalidGraph() async {
            let graph = MediaGraph {
                Chain {
                    Node("test-patern", name: "source")
                    Node("null", name: "sink", settings: ["colour": "red"])
                }
            }
            let error = await failure(of: graph)
            #expect(error?.code == "graph.invalid")
            #expect(error?.message.contains("test-pattern") == true)
            #expect(error?.message.contains("colour") == true)
        }

        @Test("An unknown pixel format is refused with the nearest one")
        func unknownPixelFormat() {
            func problems(_ format: SettingValue) -> [String] {
                MediaGraph {
                    Chain {
                        Node.testPattern()
                        Node("convert", settings: ["pixel-format": format])
                        Node.null()
                    }
                }.validate(with: NodeRegistry.builtIn).map(\.message)
            }
            #expect(problems("NV12").isEmpty)
            #expect(problems("nonsense").count == 1)
            #expect(problems("YUYV2").first?.contains("did you mean \"YUY2\"?") == true, "\(problems("YUYV2"))")
        }

        @Test("A pipeline runs once")
        func once() async throws {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern()
                        Node.null()
                    }
                })
            try await pipeline.start()
            await pipeline.stop()
            await pipeline.stop()
            let error = await #expect(throws: MediaError.self) { try await pipeline.start() }
            #expect(error?.code == "pipeline.stopped")
        }

        @Test("An image that cannot be written is reported with its path, before the start and later")
        func unwritableImage() async throws {
            let folder = TemporaryFolder()
            let images = folder.path + "/images"
            try #require(mkdir(images, 0o700) == 0)
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 64, height: 64)
                    Node.snapshot(path: images + "/frame.png")
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            rmdir(images)
            let early = await #expect(throws: MediaError.self) { try await MediaPipeline.plan(graph) }
            #expect(early?.code == MediaError.Code.fileUnwritable && early?.message.contains(images) == true)
            try await pipeline.start()
            await eventually("a failure") {
                events.all.contains {
                    if case .failed(let error) = $0 { error.code == "file.unwritable" } else { false }
                }
            }
            await pipeline.stop()
        }
    }
}
