import MediaAuthoring

/// A part of an X display with a text over it, made only of GStreamer elements.
public let desktopRegion = ElementsNode(
    "desktop-region", "A part of the desktop with a text over it",
    elements: [
        .init("ximagesrc", as: "screen", ["use-damage": false]), "videoconvert",
        .init("textoverlay", as: "caption", ["valignment": "top", "shaded-background": true]),
    ],
    exposing: [
        "display": "screen.display-name", "left": "screen.startx", "top": "screen.starty", "right": "screen.endx",
        "bottom": "screen.endy", "text": "caption.text",
    ],
    gives: .rawVideo(framesPerSecond: 25))

@c(connectlive_plugin_DesktopRegion)
public func plugin() -> Int32 { Plugin.provides(.elements(desktopRegion)) }
