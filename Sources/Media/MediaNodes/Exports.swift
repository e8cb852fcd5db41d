// One import is enough to compose, plan and run a pipeline.
@_exported public import MediaGraph
