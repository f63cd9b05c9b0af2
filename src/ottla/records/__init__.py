"""Record batches, format v2: view, validation, builder, decode, compression."""
