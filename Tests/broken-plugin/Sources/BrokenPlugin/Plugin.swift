import MediaAuthoring

@c(connectlive_plugin_BrokenPlugin)
public func plugin() -> Int32 {
    Plugin.provides(.capturer(Trapping.init), .capturer(Hanging.init), .processor(Overstepping.init))
}
