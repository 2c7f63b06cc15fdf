"""The results folder: its schema, its writer and reader, and a manifest that lists every file."""
