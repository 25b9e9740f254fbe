"""YAML text and the shape of Kubernetes objects; knows no particular kind.

stream    bytes -> spans that tile them; which of them may matter
tree      a document -> positioned nodes
lookup    what a map holds at a key, as every reader sees it
objects   a document -> its items, one at a time; reading their fields
scalars   how Go reads a plain scalar; how we write one
change    what may happen to a stream
lines     where lines begin and end in a text
write     a value -> text at a column, line break and style
overlay   the changes of one document, object by object
editor    nodes and an overlay -> edits of the text
readback  an edited document, held against the original
edit      changes -> bytes, each edit read back and compared
inflate   documents -> the items of a list, each read back and compared
"""
