import MediaAuthoring

@c(connectlive_plugin_ClockFace)
public func plugin() -> Int32 { Plugin.provides(.capturer(ClockFaceCapturer.init)) }
