"""How Go reads a plain scalar, and how we write one.

Two Go readers matter: sigs.k8s.io/yaml (Helm, kubectl; the rules of yaml.v2) and yaml.v3 (kustomize). They disagree
with each other and with PyYAML on a few plain scalars (`y`, `1e3`, `2001-12-14`), so nothing here ever asks PyYAML.
Sources: resolve.go of go.yaml.in/yaml/v2 and /v3; each row of the table is tested against both programs.
"""

from __future__ import annotations

import re

# A word is plain if a reader of any YAML version takes it for a string: letters first, then nothing that YAML knows.
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLAIN = _LETTERS + "0123456789_./-"
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

# The patterns are compiled when first needed: most streams hold nothing but plain words and small integers.

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
}
_INFINITIES = {sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")} | {".nan", ".NaN", ".NAN"}
# yaml.v2's yamlStyleFloat.
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
# Go's base 0: a leading 0 is octal, 0x 0o 0b as in Go; yaml.v2 has removed underscores before.
_INT = r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]*|0[bB][01]+|[1-9][0-9]*)"
_NUMBER_ENDS = "0123456789abcdefABCDEF._"

_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)
# Sign, prefix and 64 binary digits; longer ones fit no integer (leading zeros apart, which nobody writes that long).
_LONGEST = 68
_MAX_FLOAT = 1.7976931348623157e308


def is_null(text: str) -> bool:
    """Return whether a plain scalar is null to every reader."""
    return text in _NULLS


def resolve(text: str) -> bool | int | float | str | None:
    """Return what sigs.k8s.io/yaml (Helm, kubectl) makes of the plain scalar `text`.

    A float that JSON cannot hold (`.inf`, `.nan`) is an error there; it comes back as the float it names.
    """
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text in _INFINITIES:
        return float(text.lower().replace(".", ""))
    if text[0] not in "+-.0123456789":
        return text
    if text[0] == ".":
        # Only here yaml.v2 hands the text straight to ParseFloat, underscores included, which then fails.
        return _number(text) if re.fullmatch(_FLOAT, text) else text
    if text.isdigit() and text[0] != "0" and len(text) < 19 and text.isascii():
        return int(text)
    if text[-1] not in _NUMBER_ENDS:
        return text
    digits = text.replace("_", "")
    if re.fullmatch(_INT, digits) and len(digits) <= _LONGEST:
        number = _integer(digits)
        if number in _INT64 or (number in _UINT64 and digits[0] != "+"):
            return number
    return _number(digits) if re.fullmatch(_FLOAT, digits) else text


def _integer(digits: str) -> int:
    sign, bare = (-1, digits[1:]) if digits[0] == "-" else (1, digits.lstrip("+"))
    if bare[:1] == "0" and bare.isdigit():
        return sign * int(bare, 8)
    return sign * int(bare, 0)


def _number(digits: str) -> float | str:
    number = float(digits)
    return number if abs(number) <= _MAX_FLOAT else digits


def integer(text: str) -> int | None:
    """Return the integer that an API server's int field gets from the plain scalar `text`, or None.

    Helm and kubectl turn YAML into JSON first, so `3.0` and `3e0` arrive as 3, `0x3` too.
    """
    value = resolve(text)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_string(text: str) -> bool:
    """Return whether the plain scalar `text` is a string to Helm, kubectl, kustomize and PyYAML alike."""
    if not text:
        return False
    if text[0] in _LETTERS:
        return text.lower() not in _WORDS
    # Sexagesimals (12:30) and dates are strings to Helm, but numbers to YAML 1.1 and times to kustomize.
    if text[0] in "+-.0123456789":
        return isinstance(resolve(text), str) and ":" not in text and not _loose(text)
    return text not in ("~", "<<", "=")


def _loose(text: str) -> bool:
    """Return whether `text` is made of nothing but what numbers are made of; then some reader may see a number."""
    return not text.strip("0123456789abcdefABCDEFxXoO+-._")


def is_plain(text: str) -> bool:
    """Return whether we write the string `text` without quotes: never a word or a number to anybody."""
    return text[:1] in _LETTERS and text != "" and not text.strip(_PLAIN) and text.lower() not in _WORDS


# What a double-quoted scalar must not hold as it is: it would end it, fold it, or be no YAML character.
_ESCAPED = '["\\\\\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]'
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(text: str) -> str:
    r"""Return `text` as a double-quoted scalar that is JSON too; other than in JSON, non-ASCII stays as it is.

    Go refuses `\/` and libyaml surrogate pairs, so neither is ever written.
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + re.sub(_ESCAPED, _escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def write(value: str | float, json: bool = False) -> str:
    """Return `value` as we write scalars: strings quoted by our own rule, always where `json` says so."""
    if isinstance(value, str):
        return value if not json and is_plain(value) else quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
