"""Names of PodGroups, as OME makes them."""

from __future__ import annotations

from . import keys

# The name is a label value on the pods too, and those end at 63 characters.
LONGEST = 63
_TAIL = 54
_DIGITS = 10  # an index is an int32


def pod_group(service: str, component: str, index: int) -> str:
    """Return the name of the PodGroup of Instance `index`: `<service>-<component>-<index>`, bounded as OME bounds it.

    A longer one becomes eight hex digits of its SHA-256 (the first of them `a` where it is a decimal digit), a hyphen,
    and its last 54 characters, so that component and index stay readable.

    >>> pod_group("llama", "engine", 3)
    'llama-engine-3'
    """
    name = f"{service}-{component}-{index}"
    return name if len(name) <= LONGEST else f"{_digest(name)}-{name[-_TAIL:]}"


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS_TOO = _LETTERS + "0123456789"


def is_label(name: str, digits_first: bool) -> bool:
    """Return whether a name is a DNS label, which a namespace is; a service's begins with a letter."""
    first = _DIGITS_TOO if digits_first else _LETTERS
    return (
        0 < len(name) <= LONGEST and name[0] in first and name[-1] in _DIGITS_TOO and not name.strip(_DIGITS_TOO + "-")
    )


_SET_BASE = 31
_SET_TAIL = 22


def leader_worker_set(service: str, component: str) -> str:
    """Return what OME calls the LeaderWorkerSet of a component: `lws-<service>-<component>`, at most 35 characters.

    Of a longer base eight hex digits of its SHA-256 stay (the first of them `a` where it is a decimal digit), and its
    last 22 characters (OME v1.2.2, pkg/constants/constants.go).

    >>> leader_worker_set("llama", "engine")
    'lws-llama-engine'
    """
    base = f"{service}-{component}"
    if len(base) <= _SET_BASE:
        return f"lws-{base}"
    return f"lws-{_digest(base)}-{base[-_SET_TAIL:]}"


def _digest(name: str) -> str:
    """Return the beginning of a hash as OME puts it before a name that it cuts: a letter first."""
    from hashlib import sha256

    digest = sha256(name.encode()).hexdigest()[:8]
    return "a" + digest[1:] if digest[0].isdigit() else digest


def could_be_ours(label: str, service: str, component: str) -> bool:
    """Return whether we could have given a component's pods this label, for whatever OME and however many Instances."""
    return could_be_of_set(label, leader_worker_set(service, component)) or is_pod_group(label, service, component)


def could_be_of_set(label: str, base: str) -> bool:
    """Return whether we could have given the pods of a LeaderWorkerSet this label."""
    index = label.removeprefix(f"{base}-")
    numbered = index != label and index.isascii() and index.isdigit() and len(index) <= _DIGITS
    return numbered or label in (base, keys.POLICY_MISSING)


def is_pod_group(name: str, service: str, component: str) -> bool:
    """Return whether we could have given `name` to a PodGroup of this component, whatever the index."""
    index = name.rpartition("-")[2]
    return (
        index.isascii()
        and index.isdigit()
        and len(index) <= _DIGITS
        and name == pod_group(service, component, int(index))
    )
