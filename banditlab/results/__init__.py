"""The results folder: one schema, one writer, one reader, and a manifest without which no file counts."""
