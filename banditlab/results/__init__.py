"""The results folder: one schema, one writer, one reader; nothing written is ever lost or trusted unread."""
