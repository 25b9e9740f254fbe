"""Gang scheduling for rendered model-serving manifests.

The public API is `render(data, options)`: bytes of a YAML stream in, the bytes to deploy and the findings out.
It is imported when first used, so that `import postrender` costs nothing.
"""

__version__ = "0.1.0"


TYPE_CHECKING = False
if TYPE_CHECKING:
    from postrender.pipeline import render

__all__ = ["__version__", "render"]


def __getattr__(name: str) -> object:
    if name == "render":
        from postrender.pipeline import render

        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
