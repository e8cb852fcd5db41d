import MediaAuthoring

@c(connectlive_plugin_BrokenPlugin)
public func plugin() -> Int32 {
    Plugin.provides(.capturer(Trapping.self), .capturer(Hanging.self), .processor(Overstepping.self))
}
