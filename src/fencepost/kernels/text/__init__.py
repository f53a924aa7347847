"""Words and strings in UTF-8.

- `like`: SQL's LIKE, and the order of strings, on UTF-8 bytes
- `utf8_tokenizer`: Texts and lists of strings to items: the tokenizer of
  `fencepost.events.tokenizer` on UTF-8
- `vocabulary`: Strings to numbers: a hash table of byte strings in three flat arrays, built once
"""
