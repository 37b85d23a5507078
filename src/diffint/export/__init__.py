"""A fitted model in the formats of other programs: ONNX."""
