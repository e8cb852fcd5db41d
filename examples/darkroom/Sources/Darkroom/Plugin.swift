import MediaAuthoring

@c(connectlive_plugin_Darkroom)
public func plugin() -> Int32 { Plugin.provides(.processor(Negative.init), .renderer(LightMeter.init)) }
