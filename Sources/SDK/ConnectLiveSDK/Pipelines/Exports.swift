// One import is enough for rooms and pipelines.
@_exported public import MediaNodes
