import ConnectLiveSDK

let camera = Camera(), encoder = VideoEncoder(.vp8)
let pipeline = try await MediaPipeline { camera >>> encoder >>> Publish(room: "kitchen") }
try await pipeline.start()
for await event in pipeline.events { print(event) }  // until it ends or fails
await pipeline.stop()
