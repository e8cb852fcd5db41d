import MediaAuthoring

@c(connectlive_plugin_DrawnFrames)
public func plugin() -> Int32 { Plugin.provides(.capturer(DrawnPictures.init)) }
