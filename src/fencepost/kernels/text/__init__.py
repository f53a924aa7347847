"""Words and strings in UTF-8.

- `like`: SQL's LIKE, and comparison of strings
- `utf8_tokenizer`: Tokenization of texts and lists of strings into items
- `vocabulary`: Distinct strings, numbered, with a hash table
"""
