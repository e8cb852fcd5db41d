// The module with which custom nodes are written. Its types are parts of graphs.
@_exported public import MediaAuthoring
