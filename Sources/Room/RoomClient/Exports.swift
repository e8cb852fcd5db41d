// The events, streams and statistics of a connection are part of the engine's interface.
@_exported public import ClientCore
