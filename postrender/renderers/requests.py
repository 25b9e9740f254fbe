"""What may be asked to be rendered, what comes of it, and why nothing may."""

from __future__ import annotations

from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Request: TypeAlias = "Chart | Kustomization | Folder"

# Of an output or a folder; a stream that is deployed is a thousandth of it.
LARGEST = 256 << 20


class Chart(Record):
    """A Helm chart, a folder or a .tgz, and what `helm template` is told.

    `values` are files, `inline` is the text of one more; later ones win, and `sets` and `set_strings` win over them, as
    `--set` and `--set-string` do: a comma in a value is a comma, unless the value is a list in braces.
    """

    path: str
    release: str
    namespace: str = ""
    values: tuple[str, ...] = ()
    inline: str = ""
    sets: tuple[tuple[str, str], ...] = ()
    set_strings: tuple[tuple[str, str], ...] = ()
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    include_crds: bool = True
    skip_tests: bool = False
    skip_schema_validation: bool = False


class Kustomization(Record):
    """A folder with a kustomization; built without plugins, and nothing above the folder is loaded but other bases."""

    path: str


class Folder(Record):
    """A folder of manifests as they are: its .yaml, .yml and .json files in the order of their names.

    A link must lead to somewhere in `root`, by default the folder. A file that holds `skip_mark` is left out, and so
    is a YAML file without the word `needs`.
    """

    path: str
    root: str = ""
    recurse: bool = False
    skip_mark: bytes = b""
    needs: bytes = b""


class Output(Record):
    """The manifests, and what the renderer said beside them.

    Of a folder `starts` are its files: the line of `data` that each begins on with what was put before it, the line
    that its own first one is or would be, and its path.
    """

    data: bytes
    said: str = ""
    starts: tuple[tuple[int, int, str], ...] = ()


class Failed(Exception):  # noqa: N818 - caught by name, and said
    """Raised where there are no manifests; the message is one line: what is wrong, and what to do.

    `said` is all that the renderer said.
    """

    def __init__(self, message: str, said: str = "") -> None:
        """Carry the message, and what the renderer said."""
        super().__init__(message)
        self.said = said
