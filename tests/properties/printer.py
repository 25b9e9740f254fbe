"""A noisy printer: writes a JSON-like model as one YAML document, in as many ways as the language has.

Every document gets a `Taste` of its own (how often flow style, comments, anchors, odd breaks and so on), so that some
documents are calm but for one thing and some are noisy in everything. All choices come from the `random.Random` that is
handed in. A line break is "\\n" until the last step, which puts in the breaks the document is to have.

`Printed.model` says what the document means to a reader that lets a map's own keys win over merged ones (PyYAML,
yaml.v3); it is None where the printing itself made that unsure.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import yaml
from yaml.resolver import Resolver

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

BREAKS = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "nel": "\x85", "ls": "\u2028", "ps": "\u2029"}
COMMENTS = (
    "#", "# c", "# key: value", "#\ttab", "# {", "# }", "# 'open", '# "', "# &a *b", "# - a", "# <<: *x", "# é 🙂",
    "#!x", "# ---", "# labels:", "## InferenceService",
)  # fmt: skip
# Where a block node starts: after `k:`, `-`, `?`, the `:` of an explicit key, or at the root of the document.
KEY, DASH, ASK, TELL, ROOT = "key", "dash", "ask", "tell", "root"
# What the text so far ends with, and so what may follow: anything, a block scalar, one that keeps blank lines.
FREE, BLOCK, KEEP = "free", "block", "keep"

_RESOLVER = Resolver()
_PLAIN = re.compile(r"[\w./*&!%@`|>#\[\]{},'\"?:=+()<~^$;\\ -]+")
_PLAIN_START = re.compile(r"[\w./=+(<~^$;\\]")
_FLOW_UNSAFE = re.compile(r"[\[\]{},?:]")


class Merge(NamedTuple):
    """The value of a `<<` key: names of anchors and inline maps, written in this order."""

    sources: Sequence[str | dict]
    listed: bool


class Printed(NamedTuple):
    text: str
    model: object
    features: frozenset[str]


class Taste:
    """How one document likes to be written: a chance for every habit."""

    def __init__(self, rng: random.Random) -> None:
        self.flow = rng.choice((0, 0, 0.05, 0.15, 0.15, 0.4, 1))
        self.json = rng.choice((0, 0, 0, 0.05))
        self.multi = rng.choice((0, 0.1, 0.5))
        self.comment = rng.choice((0, 0.05, 0.15, 0.4))
        self.explicit = rng.choice((0, 0, 0, 0.08, 0.3))
        self.anchor = rng.choice((0, 0, 0.04, 0.08))
        self.alias = rng.choice((0.05, 0.3, 0.8))
        self.merge = rng.choice((0, 0.05, 0.15, 0.3))
        self.tag = rng.choice((0, 0, 0.03, 0.1))
        self.tab = rng.choice((0, 0, 0.2))
        self.quote = rng.choice((0.1, 0.3, 0.7))
        self.block_scalar = rng.choice((0.2, 0.5, 0.9))
        self.fold = rng.choice((0, 0.1, 0.4))
        self.indents = rng.choice(((2,), (2,), (4,), (1,), (3,), (1, 2, 3, 4, 5, 6, 7)))
        self.dashes = rng.choice(((0,), (0,), (2,), (0, 1, 2, 5)))
        self.breaks = rng.choices(
            (("lf",), ("crlf",), ("cr",), ("nel",), ("ls",), ("lf", "crlf"), ("lf", "crlf", "cr", "nel", "ls", "ps")),
            (60, 20, 6, 3, 3, 4, 4),
        )[0]
        self.rare = rng.choice((0, 0, 0, 0.01))


def document(model: object, rng: random.Random, *, first: bool = True) -> Printed:
    """The model as one document of a stream; any but the first starts with `---`."""
    return Printer(rng).document(model, first)


class Printer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.taste = Taste(rng)
        self.anchors: list[tuple[str, object]] = []
        self.names = 0
        self.bases: set[int] = set()
        self.exact = True
        self.tail = FREE
        self.features: set[str] = set()

    # The document as a whole

    def document(self, model: object, first: bool) -> Printed:
        if isinstance(model, dict):
            # What people write to be merged elsewhere.
            self.bases = {id(value) for key, value in model.items() if key.startswith("x-") and isinstance(value, dict)}
        if isinstance(model, (dict, list)) and self.chance(0.06):
            head, body = self.start(first, ""), self.json_text(model) + "\n"
            self.saw("json-document")
        else:
            flow = not isinstance(model, (dict, list)) or not model or self.chance(self.taste.flow * 0.5)
            head, body = self.flow_root(model, first) if flow else self.block_root(model, first)
        text = head + body + self.end()
        text = self.last_line(text)
        return Printed(self.with_breaks(text), model if self.exact else None, frozenset(self.features))

    def flow_root(self, model: object, first: bool) -> tuple[str, str]:
        self.saw("flow-root")
        head = self.start(first, "")
        if re.search(r"(^|\n)---\n$", head) and self.chance(0.5):
            head = head[:-1] + " "
        return head, self.props(model, "") + self.flow(model, 0, props=False) + self.eol()

    def block_root(self, model: dict | list, first: bool) -> tuple[str, str]:
        props = self.props(model, "").rstrip()
        head = self.start(first, props)
        column = self.rng.choice((0, 0, 0, 0, 0, 0, 0, 2, self.rng.randint(1, 5)))
        if column:
            self.saw("indented-root")
        body = self.block_map(model, column) if isinstance(model, dict) else self.block_list(model, column)
        self.register(props, model)
        return head, body

    def start(self, first: bool, props: str) -> str:
        """What stands before the root: mark, comments, a directive, `---` with properties or a comment."""
        text = ""
        if first and self.chance(0.06):
            text += "\ufeff"
            self.saw("bom")
        if first:
            text += self.filler(0)
        marked = not first or self.chance(0.4)
        if first and self.chance(0.02):
            text += self.rng.choice(("%YAML 1.1\n", "%TAG !e! tag:example.com,2000:\n"))
            marked = True
            self.saw("directive")
        if not marked:
            return text + (props + self.eol() if props else "")
        text += "---"
        if props and self.chance(0.5):
            text, props = f"{text} {props}", ""
        text += self.rng.choice(("\n", "\n", "\n", " # comment\n", " \n", "\t# c\n"))
        return text + self.filler(0) + (props + self.eol() if props else "")

    def end(self) -> str:
        """What stands after the root: comments, blank lines, `...`."""
        text = "" if self.tail != FREE and self.chance(0.7) else self.filler(0)
        if self.chance(0.06):
            text += self.rng.choice(("...\n", "... # c\n", "...\n\n", "...\n# c\n", "... \n"))
            self.tail = FREE
            self.saw("dots")
        elif self.tail != KEEP and self.chance(0.1):
            text += "\n" * self.rng.randint(1, 3)
        return text

    def last_line(self, text: str) -> str:
        if not self.chance(0.25 if self.tail == FREE else 0.7):
            return text
        self.saw("no-final-newline")
        if self.tail != FREE:
            self.saw("block-scalar-eof")
            self.exact = False
        return text[:-1] if self.chance(0.8) else text.rstrip("\n ")

    def with_breaks(self, text: str) -> str:
        kinds = self.taste.breaks
        self.saw("break-" + "+".join(kinds))
        if kinds == ("lf",):
            return text
        if "ls" in kinds or ("lf" in kinds and "cr" in kinds):
            self.exact = False  # LS stays in block scalars; CR and LF meet and become one break
        return re.sub("\n", lambda _: BREAKS[self.rng.choice(kinds)], text)

    # Block style

    def block(self, value: object, column: int, place: str) -> str:
        """What follows an indicator: its own white space first, a line break last."""
        if isinstance(value, Merge):
            return " " + self.merge_flow(value, column + 1) + self.eol()
        name = self.alias_of(value)
        if name:
            return f"{self.gap(place)}*{name}{self.eol()}"
        if isinstance(value, (dict, list)):
            if not value or self.chance(self.taste.flow):
                return self.gap(place) + self.flow(value, column + 1) + self.eol()
            if self.chance(self.taste.json):
                self.saw("json-value")
                return self.gap(place) + self.json_text(value, column + 1) + self.eol()
            return self.block_collection(value, column, place)
        return self.block_scalar_node(value, column, place)

    def block_collection(self, value: dict | list, column: int, place: str) -> str:
        props = self.props(value, "").rstrip()
        write = self.block_map if isinstance(value, dict) else self.block_list
        if place in (DASH, ASK, TELL) and not props and self.chance(0.7):
            space = self.rng.choice((1, 1, 1, 2, 3))
            return " " * space + write(value, column + 1 + space, inline=True)
        if isinstance(value, list) and place in (KEY, TELL):
            inner = column + self.rng.choice(self.taste.dashes)
        else:
            inner = column + self.rng.choice(self.taste.indents)
        if props and inner > column and self.chance(0.1):
            head = f"{self.eol(place)}{' ' * (column + 1)}{props}{self.eol()}"
            self.saw("props-on-own-line")
        else:
            head = self.gap(place) + props + self.eol() if props else self.eol(place)
        text = head + write(value, inner)
        self.register(props, value)
        return text

    def block_map(self, value: dict, column: int, *, inline: bool = False) -> str:
        out = []
        for number, (key, item) in enumerate(self.pairs(value)):
            if not (inline and number == 0):
                out.append(self.filler(column) + " " * column)
            out.append(self.block_entry(key, item, column))
        return "".join(out)

    def block_entry(self, key: str, value: object, column: int) -> str:
        if not self.chance(self.taste.explicit):
            return self.key(key) + ":" + self.block(value, column, KEY)
        self.saw("explicit-key")
        text = "? " + self.explicit_key(key, column)
        if value is None and self.chance(0.5):
            return text
        return text + self.filler(column) + " " * column + ":" + self.block(value, column, TELL)

    def explicit_key(self, key: str, column: int) -> str:
        if key != "<<" and self.chance(0.1) and literal_ok(key):
            return self.block_text(key, column, "|").lstrip(" ")
        return self.key(key).rstrip(" ") + self.eol()

    def block_list(self, value: list, column: int, *, inline: bool = False) -> str:
        out = []
        for number, item in enumerate(value):
            if not (inline and number == 0):
                out.append(self.filler(column) + " " * column)
            out.append("-" + self.block(item, column, DASH))
        return "".join(out)

    def block_scalar_node(self, value: object, column: int, place: str) -> str:
        props = self.props(value, "")
        if value is None and "!!str" not in props and self.chance(0.5):
            self.saw("empty-value")
            self.register(props, value)
            return self.gap(place) + props.rstrip() + self.eol() if props else self.eol(place)
        if isinstance(value, str) and literal_ok(value) and self.chance(self.block_chance(value)):
            folded = foldable(value) and self.chance(0.4)
            text = self.gap(place) + self.block_text(value, column, ">" if folded else "|", props)
        else:
            text = self.gap(place) + props + self.scalar(value, column + 1, bool(props)) + self.eol()
        self.register(props, value)
        return text

    def block_chance(self, value: str) -> float:
        return self.taste.block_scalar if "\n" in value or len(value) > 20 else 0.04

    def block_text(self, value: str, column: int, sign: str, props: str = "") -> str:
        """A literal or folded scalar, from its `|` to its last line break."""
        self.saw("literal" if sign == "|" else "folded")
        body = value.rstrip("\n")
        ends = len(value) - len(body)
        chomp = "-" if ends == 0 else self.rng.choice(("", "+")) if ends == 1 else "+"
        parent = max(column, 0)
        indent = column + self.rng.choice(self.taste.indents)
        indent = max(indent, 1)
        explicit = body.startswith((" ", "\n")) or self.chance(0.1)
        marks = (str(indent - parent if column >= 0 else indent), chomp) if explicit else (chomp,)
        marks = "".join(self.rng.sample(marks, len(marks)))
        lines = self.folded(body) if sign == ">" else body.split("\n")
        margin = " " * indent
        text = "".join((margin + line if line or self.chance(0.2) else "") + "\n" for line in lines)
        head = props + sign + marks + self.rng.choice(("", "", "", " ", " # c"))
        self.tail = KEEP if chomp == "+" else BLOCK
        return f"{head}\n{text}" + "\n" * max(ends - 1, 0)

    def folded(self, body: str) -> list[str]:
        """Lines that fold to the body: a break becomes a blank line more, some spaces become breaks."""
        lines: list[str] = []
        for line in body.split("\n"):
            lines += self.sometimes_broken(line, "\n").split("\n") + [""] * bool(line)
        return lines[:-1]

    def filler(self, column: int) -> str:
        """Comment and blank lines between entries whose column is given."""
        text = ""
        while self.chance(self.taste.comment):
            if self.chance(0.6):
                reach = column + 3 if self.tail == FREE else column
                text += " " * self.rng.randint(0, reach) + self.rng.choice(COMMENTS) + "\n"
                self.tail = FREE
                self.saw("comment-line")
            elif self.tail != KEEP:
                text += " " * self.rng.choice((0, 0, 0, self.rng.randint(0, column))) + "\n"
        return text

    def gap(self, place: str) -> str:
        if place == KEY and self.chance(self.taste.tab):
            self.saw("tab-after-colon")
            return "\t"
        return self.rng.choice((" ", " ", " ", " ", "  ", "   "))

    def eol(self, place: str = KEY) -> str:
        """The end of a line; no tab may come straight after `-`, `?` or the `:` of an explicit key."""
        self.tail = FREE
        tabs = place in (KEY, ROOT)
        if self.chance(self.taste.comment):
            self.saw("comment-trailing")
            blank = self.rng.choice((" ", " ", "  ", " \t"[: 1 + tabs]))
            blank = "\t" if tabs and self.chance(self.taste.tab) else blank
            return blank + self.rng.choice(COMMENTS) + "\n"
        return self.rng.choice(("",) * 12 + (" ", "\t" * tabs)) + "\n"

    # Flow style

    def flow(self, value: object, column: int, *, props: bool = True) -> str:
        """A node inside brackets, or a bracket on a block line; `column` is where further lines may start."""
        name = self.alias_of(value)
        if name:
            return f"*{name}"
        marks = self.props(value, "") if props else ""
        if isinstance(value, dict):
            text = self.flow_map(value, column)
        elif isinstance(value, list):
            text = self.flow_list(value, column)
        else:
            text = self.scalar(value, column, bool(marks), flow=True)
        self.register(marks, value)
        return marks + text

    def flow_map(self, value: dict, column: int) -> str:
        self.saw("flow-map" if value else "empty-map")
        entries = [self.flow_entry(key, item, column) for key, item in self.pairs(value)]
        return self.bracketed(entries, "{}", column)

    def flow_entry(self, key: str, value: object, column: int) -> str:
        if self.chance(self.taste.explicit):
            self.saw("flow-explicit-key")
            return f"? {self.key(key, flow=True)} : {self.flow_value(value, column)}"
        text = self.key(key, flow=True)
        if value is None and self.chance(0.5):
            self.saw("flow-key-alone")
            return text.rstrip(" ") if self.chance(0.7) else text + ": "
        if text[-1] in "'\"" and self.chance(0.2):
            self.saw("adjacent-value")
            return f"{text}:{self.flow_value(value, column)}"
        return f"{text}:{self.flow_gap(column) or ' '}{self.flow_value(value, column)}"

    def flow_value(self, value: object, column: int) -> str:
        if isinstance(value, Merge):
            return self.merge_flow(value, column)
        return self.flow(value, column)

    def flow_list(self, value: list, column: int) -> str:
        self.saw("flow-list" if value else "empty-list")
        entries = []
        for item in value:
            if isinstance(item, dict) and len(item) == 1 and self.chance(0.5):
                [(key, inner)] = item.items()
                self.saw("flow-pair")
                entries.append(f"{self.key(key, flow=True)}: {self.flow(inner, column)}")
            else:
                entries.append(self.flow(item, column))
        return self.bracketed(entries, "[]", column)

    def bracketed(self, entries: list[str], brackets: str, column: int) -> str:
        gap = self.flow_gap
        if not entries:
            return brackets[0] + gap(column) + brackets[1]
        comma = "," if self.chance(0.15) else ""
        if comma:
            self.saw("trailing-comma")
        text = gap(column) + entries[0]
        for entry in entries[1:]:
            text += gap(column) * self.chance(0.2) + "," + (gap(column) or self.rng.choice(("", " "))) + entry
        return brackets[0] + text + gap(column) + comma + gap(column) + brackets[1]

    def flow_gap(self, column: int) -> str:
        if not self.chance(self.taste.multi):
            return self.rng.choice(("", "", " "))
        indent = " " * (max(column, 0) + self.rng.randint(0, 4))
        if self.chance(self.taste.tab):
            indent += "\t"
        if self.chance(self.taste.comment):
            self.saw("flow-comment")
            return " " + self.rng.choice(COMMENTS) + "\n" + indent
        self.saw("flow-multi-line")
        return self.rng.choice(("\n", "\n", " \n", "\n\n")) + indent

    def json_text(self, value: object, column: int = 0) -> str:
        indent = self.rng.choice((None, None, 0, 2, 4, "\t"))
        separators = self.rng.choice(((",", ":"), (", ", ": "), (",", ": ")))
        plain = json.dumps(value, ensure_ascii=False)
        narrow = max(plain) <= "\uffff" and self.chance(0.5)
        text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=narrow)
        text = re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe]", lambda found: f"\\u{ord(found[0]):04x}", text)
        return text.replace("\n", "\n" + " " * max(column, 0)) if column > 0 else text

    # Keys and scalars

    def key(self, key: str, *, flow: bool = False) -> str:
        """A key on one line; `key :` and an alias end with a blank."""
        if key == "<<":
            return "<<"
        name = self.alias_of(key) if self.chance(0.3) else None
        if name:
            self.saw("alias-key")
            return f"*{name} "
        props = self.props(key, "") if self.chance(0.1) else ""
        text = self.one_line(key, flow, bool(props))
        self.register(props, key)
        return props + text + " " * self.chance(0.04)

    def one_line(self, key: str, flow: bool, tagged: bool) -> str:
        if key in ("yes", "on", "no") and self.chance(self.taste.rare * 10):
            self.exact = False
            self.saw("bool-key")
            return key
        # Plain, these are refused on the path: a few of them are enough.
        quote = 0.96 if key in ("y", "n", "1e3") else self.taste.quote * 0.3
        if plain_ok(key, flow, tagged) and not self.chance(quote):
            return key
        if single_ok(key) and self.chance(0.5):
            return "'" + key.replace("'", "''") + "'"
        return self.double(key, 0, fold=False)

    def scalar(self, value: object, column: int, tagged: bool, *, flow: bool = False) -> str:
        if not isinstance(value, str):
            return self.not_a_string(value)
        if plain_ok(value, flow, tagged) and not self.chance(self.taste.quote):
            return self.sometimes_broken(value, "\n" + " " * column)
        if single_ok(value) and self.chance(0.5):
            self.saw("single")
            return "'" + self.sometimes_broken(value.replace("'", "''"), "\n" + " " * column) + "'"
        self.saw("double")
        return self.double(value, column)

    def not_a_string(self, value: object) -> str:
        if value is None:
            return self.rng.choice(("~", "null", "Null", "NULL", "null"))
        if isinstance(value, bool):
            word = str(value).lower()
            return self.rng.choice((word, word, word, word.capitalize(), word.upper()))
        return json.dumps(value)

    def double(self, value: str, column: int, *, fold: bool = True) -> str:
        escapes = self.rng.choice((0, 0, 0, 0.05, 0.5))
        out = []
        for number, char in enumerate(value):
            inside = 0 < number < len(value) - 1
            if fold and inside and self.chance(self.taste.fold * 0.15):
                self.saw("escaped-break")
                margin = " " * (max(column, 0) + self.rng.randint(0, 2))
                out.append(f"\\\n{margin}" + ("\\ " if char == " " else self.maybe_escaped(char, escapes)))
            elif fold and inside and char == " " and between_words(value, number) and self.chance(self.taste.fold):
                self.saw("multi-line-scalar")
                out.append("\n" + " " * max(column, 0))
            else:
                out.append(self.maybe_escaped(char, escapes))
        return '"' + "".join(out) + '"'

    def maybe_escaped(self, char: str, share: float) -> str:
        return self.escaped(char) if must_escape(char) or self.chance(share) else char

    def escaped(self, char: str) -> str:
        code = ord(char)
        ways = [f"\\U{code:08x}"]
        if code < 0x10000:
            ways.append(f"\\u{code:04X}")
        if code < 0x100:
            ways.append(f"\\x{code:02x}")
        short = {"\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\r": "r", "\x1b": "e", " ": " ", '"': '"',
                 "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P"}  # fmt: skip
        if char in short:
            ways += ["\\" + short[char]] * 3
        self.saw("escape")
        return self.rng.choice(ways)

    def sometimes_broken(self, text: str, with_: str) -> str:
        """Some single spaces between words become a line break, which folds back to a space."""

        def broken(found: re.Match[str]) -> str:
            if not self.chance(self.taste.fold):
                return found[0]
            self.saw("multi-line-scalar")
            return with_

        return re.sub(r"(?<=[A-Za-z0-9]) (?=[A-Za-z0-9])", broken, text)

    # Anchors, aliases, tags, merges

    def props(self, value: object, text: str) -> str:
        """An anchor and a tag, either, or nothing; each with a blank after it."""
        marks = []
        anchored = self.taste.anchor * (3 if isinstance(value, dict) else 1)
        if self.chance(0.7 if id(value) in self.bases else anchored):
            marks.append(f"&{self.new_name()}")
            self.saw("anchor")
        tag = self.tag_for(value)
        if tag:
            self.saw("tag")
            marks.append(tag)
        self.rng.shuffle(marks)
        return text + "".join(mark + " " for mark in marks)

    def new_name(self) -> str:
        if self.anchors and self.chance(0.02):
            name = self.rng.choice(self.anchors)[0]
            self.anchors = [entry for entry in self.anchors if entry[0] != name]
            self.saw("anchor-again")
            self.exact = False
            return name
        self.names += 1
        return self.rng.choice("abx") + str(self.names)

    def tag_for(self, value: object) -> str:
        if not self.chance(self.taste.tag):
            return ""
        kinds = {dict: "!!map", list: "!!seq", str: "!!str", bool: "!!bool", int: "!!int"}
        tag = kinds.get(type(value), "")
        if isinstance(value, str) and self.chance(0.2):
            if not reads_as_string(value):
                self.exact = False  # libyaml resolves `! '1'` as if it were plain
            return "!"
        return "!<tag:yaml.org,2002:" + tag[2:] + ">" if tag and self.chance(0.1) else tag

    def register(self, props: str, value: object) -> None:
        found = re.search(r"&(\w+)", props)
        if found:
            self.anchors.append((found[1], value))

    def alias_of(self, value: object) -> str | None:
        if not self.chance(self.taste.alias):
            return None
        names = [name for name, known in self.anchors if same(known, value)]
        if not names:
            return None
        self.saw("alias-map" if isinstance(value, dict) else "alias")
        return self.rng.choice(names)

    def pairs(self, value: dict) -> list[tuple[str, object]]:
        """The entries to write: with a `<<` among them now and then, and rarely one key twice."""
        entries = list(value.items())
        if entries and self.chance(self.taste.rare):
            entries.insert(0, (self.rng.choice(entries)[0], self.rng.choice(("x", None, 1))))
            self.saw("duplicate-key")
            return entries
        known = [(name, held) for name, held in self.anchors if mergeable(held, value)]
        if entries and self.chance(0.6 if known else self.taste.merge):
            return self.merged(value, entries, known)
        return entries

    def merged(
        self, value: dict, entries: list[tuple[str, object]], known: list[tuple[str, dict]]
    ) -> list[tuple[str, object]]:
        """Some entries come by `<<`: from anchored maps whose keys are all ours, or from inline maps."""
        sources: list[tuple[str | dict, dict]] = self.rng.sample(known, min(len(known), self.rng.choice((1, 1, 1, 2))))
        if not sources and self.chance(0.7):
            return entries
        if not sources or self.chance(0.1):
            # Mostly scalars: a map on the path that comes by `<<` is refused, which is seen soon enough.
            likely = [entry for entry in value.items() if not isinstance(entry[1], dict) or self.chance(0.1)]
            if not likely:
                return entries
            part = dict(self.rng.sample(likely, self.rng.randint(1, len(likely))))
            sources.append((part, part))
            self.saw("merge-inline")
        given: dict = {}
        for _, held in sources:
            for key, item in held.items():
                given.setdefault(key, item)
        keep = self.rng.choice((0, 0, 0.5))
        own = [(key, item) for key, item in entries if not same(given.get(key, given), item) or self.chance(keep)]
        self.saw("merge-alias" if known else "merge")
        at = self.rng.choice((0, 0, len(own), self.rng.randint(0, len(own))))
        if at:
            self.saw("own-before-merge")
        own.insert(at, ("<<", Merge([shown for shown, _ in sources], len(sources) > 1 or self.chance(0.1))))
        return own

    def merge_flow(self, merge: Merge, column: int) -> str:
        shown = [f"*{one}" if isinstance(one, str) else self.flow(one, column, props=False) for one in merge.sources]
        if not merge.listed:
            return shown[0]
        self.saw("merge-list")
        return "[" + ", ".join(shown) + "]"

    # Small things

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def saw(self, feature: str) -> None:
        self.features.add(feature)


def same(one: object, other: object) -> bool:
    """Equal and of the same type: True is not 1."""
    return type(one) is type(other) and json.dumps(one) == json.dumps(other)


def between_words(text: str, number: int) -> bool:
    return (text[number - 1] + text[number + 1]).isalnum()


def mergeable(held: object, into: dict) -> bool:
    """Whether a map could bring some of the entries of another, and of its maps no other ones."""
    return (
        isinstance(held, dict)
        and bool(held)
        and held.keys() <= into.keys()
        and all(same(into[key], inner) or not isinstance(into[key], dict) for key, inner in held.items())
    )


def plain_ok(text: str, flow: bool, tagged: bool) -> bool:
    """Whether the string, written bare, is that string again."""
    if not text or not _PLAIN.fullmatch(text) or not _PLAIN_START.match(text) or text[-1] in " :":
        return False
    if ": " in text or " #" in text or (flow and _FLOW_UNSAFE.search(text)) or text.startswith(("---", "...", "<<")):
        return False
    return reads_as_string(text) and (not tagged or text.isalnum())


def reads_as_string(plain: str) -> bool:
    return _RESOLVER.resolve(yaml.ScalarNode, plain, (True, False)) == "tag:yaml.org,2002:str"


def single_ok(text: str) -> bool:
    return bool(text) and not any(must_escape(char) for char in text.replace('"', "").replace("\\", ""))


def must_escape(char: str) -> bool:
    code = ord(char)
    if char in '"\\' or code < 0x20 or 0x7F <= code <= 0x9F or char in "\u2028\u2029\ufeff":
        return True
    return 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def literal_ok(text: str) -> bool:
    """Whether a block scalar can hold it: something on its lines, and nothing that needs an escape but breaks."""
    body = text.replace("\n", "").replace('"', "").replace("\\", "").replace("\t", "")
    return bool(body.strip()) and not any(must_escape(char) for char in body)


def foldable(text: str) -> bool:
    """Whether no line starts or ends with a blank: those fold by other rules."""
    body = text.rstrip("\n")
    return not body.startswith("\n") and all(line == line.strip(" \t") for line in body.split("\n"))
