import ConnectLiveSDK

let camera = Camera(), encoder = VideoEncoder(.vp8)
let pipeline = try await MediaPipeline { camera >>> encoder >>> Publish(room: "kitchen") }
try await pipeline.run()  // until it ends or fails, or Ctrl-C
