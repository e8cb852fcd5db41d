import MediaAuthoring

@c(connectlive_plugin_QRCode)
public func plugin() -> Int32 { Plugin.provides(.capturer(QRCodeCapturer.init)) }
