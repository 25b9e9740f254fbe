"""YAML text and the shape of Kubernetes objects; knows no particular kind.

stream    bytes -> spans that tile them; which of them may matter
tree      the text of a span -> positioned nodes, and looking things up in them
objects   a span -> its items, one at a time; where a new item goes
scalars   how Go reads a plain scalar; how we write one
change    what may happen to a stream
write     a value -> text at a column, line break and style
edit      changes -> text, each edit read back and compared
"""
