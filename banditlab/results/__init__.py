"""The results folder: one schema, one writer, one reader, and a manifest that lists every file."""
