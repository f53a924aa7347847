"""Events as tables: each attribute of each event is read once, whoever asks for it."""
