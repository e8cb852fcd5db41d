import RTP
import TestSupport
import Testing

@testable import RoomSimulation

/// Simulcast while layers end, begin late, or are offered in another order.
struct LayerFaultTests {
    private typealias Stage = LayerTests.Stage

    @Test(arguments: [300_000, 800_000])
    func `a congested link costs no keyframe of the layer that it leaves`(rate: Int) throws {
        // The lower layer's keyframe takes almost a second.
        let far = Link(up: .init(delay: .milliseconds(400)), down: .init(delay: .milliseconds(400)))
        let stage = Stage(publisher: far, [LayerTests.link(5_000_000)])
        let (ada, viewer, simulation) = (stage.ada, stage.viewers[0], stage.simulation)
        stage.begin()
        #expect(stage.layers(in: try stage.run(20)) == [2])
        simulation.task { viewer.setLink(LayerTests.link(rate)) }
        let requests = ada.layerKeyframeRequests
        let layer = try #require(stage.layers(in: try stage.run(6))[0])
        #expect(layer < 2)
        #expect(ada.layerKeyframeRequests[2] == requests[2])
    }

    @Test func `a lower layer begins at once, without a sender report of its own`() throws {
        var layers = VideoLayer.three
        layers[1].hasClock = false
        let stage = Stage(layers: layers, [LayerTests.link(5_000_000)])
        let (viewer, simulation) = (stage.viewers[0], stage.simulation)
        stage.begin { video in
            try await simulation.sleep(for: .seconds(8))
            try await viewer.setView(of: video, profile: .mid)
        }
        #expect(stage.layers(in: try stage.run(8)) == [2])
        #expect(stage.layers(in: try stage.run(2)) == [1])
    }

    @Test(arguments: [1, 2])
    func `viewers of a lowest layer that stops go on with the next one, and newcomers begin with it`(loops: Int) throws
    {
        let stage = Stage(loops: loops, [.wired, .wired, .wired])
        let (ada, viewers, simulation) = (stage.ada, stage.viewers, stage.simulation)
        stage.begin { video in
            try await viewers[0].setView(of: video, profile: .low)
            try await viewers[2].unsubscribe(from: video)
            try await simulation.sleep(for: .seconds(5))
            ada.setLayer(0, isDelivered: false)
            try await simulation.sleep(for: .seconds(5))
            try await viewers[2].subscribe(to: video)
            try await viewers[2].setView(of: video, profile: .low)
            try await simulation.sleep(for: .seconds(5))
            ada.setLayer(0, isDelivered: true)
        }
        #expect(stage.layers(in: try stage.run(5)).prefix(2) == [0, 2])
        let report = try stage.run(8)
        #expect(stage.layers(in: report) == [1, 2, 1])
        for viewer in report.viewers { #expect(viewer.longestFreeze < .milliseconds(1500), "\(viewer)") }
        #expect(stage.layers(in: try stage.run(8)) == [0, 2, 0])
    }

    @Test func `viewers of a middle layer that stops go on with the one below if they cannot get the one above`() throws
    {
        let stage = Stage([LayerTests.link(700_000), .wired])
        let (ada, simulation) = (stage.ada, stage.simulation)
        stage.begin { _ in
            try await simulation.sleep(for: .seconds(5))
            ada.setLayer(1, isDelivered: false)
        }
        #expect(stage.layers(in: try stage.run(5)) == [1, 2])
        #expect(stage.layers(in: try stage.run(4)) == [0, 2])
    }

    @Test func `the publisher is asked for a layer that stopped as long as viewers on another loop may want it`() throws
    {
        let stage = Stage(loops: 2)
        let (ada, simulation) = (stage.ada, stage.simulation)
        stage.begin { _ in
            try await simulation.sleep(for: .seconds(6))
            ada.setLayer(2, isDelivered: false)
            try await simulation.sleep(for: .seconds(22))
            ada.setLayer(2, isDelivered: true)
        }
        #expect(stage.layers(in: try stage.run(6)) == [2])
        var asked: [[String]?] = []
        _ = try stage.run(2)
        for _ in 0..<80 {
            _ = try stage.run(0.25)
            asked.append(ada.wantedLayers)
        }
        #expect(asked.allSatisfy { $0?.contains("f") != false }, "\(asked)")
        #expect(stage.layers(in: try stage.run(5)) == [2])
    }

    @Test func `layers that are offered highest first are put in order before anyone watches the lower ones`() throws {
        let stage = Stage(layers: VideoLayer.three.reversed(), [LayerTests.link(250_000)])
        stage.begin()
        #expect(stage.layers(in: try stage.run(6)) == [2])
    }

    @Test func `all layers run until each is measured, also those that nobody watches`() throws {
        let stage = Stage([])
        stage.begin()
        _ = try stage.run(2)
        #expect(stage.ada.wantedLayers == nil && stage.ada.layerFrames.allSatisfy { $0 > 10 })
        _ = try stage.run(4)
        #expect(stage.ada.wantedLayers == ["q"])
    }
}
