"""The entry point: without arguments the filter, otherwise the command line.

Imports nothing of ours before it knows what is asked; the filter's start-up time is every deploy's.
"""

import os
import sys


def main() -> None:
    """Run with the process's arguments and streams, and leave the process.

    Without the interpreter's tidying up, which takes a tenth of a small run: all that was written is flushed.
    """
    code = run()
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def run() -> int:
    """Run with the process's arguments and streams; return the exit code."""
    try:
        words = [word for word in sys.argv[1:] if word]  # hosts pass unset variables as empty words
        completing = "_POSTRENDER_COMPLETE" in os.environ  # a shell asks what could follow
        if words or completing or (sys.stdin is not None and sys.stdin.isatty()):
            from postrender import cli

            return _flushed(cli.run(words))
        import gc

        gc.disable()  # nothing here makes cycles, and a stream's nodes are many
        from postrender.hosts import filter as host

        return host.run(
            host.STDIN,
            sys.stdin.buffer if sys.stdin is not None else None,
            sys.stdout.buffer if sys.stdout is not None else None,
            sys.stderr,
        )
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        return _failed("postrender: error: the input does not fit into memory\n", 4)
    except Exception as error:
        return _bug(error)


def _flushed(code: int) -> int:
    """Write out what is left; after a failure to write, which has been said, it fails here once more."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        if code == 0:
            raise
    return code


def _reader_gone() -> int:
    """Say nothing and let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _bug(error: Exception) -> int:
    if os.environ.get("POSTRENDER_DEBUG"):
        raise error
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else ""
    message = (
        f"postrender: error: a bug of postrender: {type(error).__name__}: {error}{where};"
        " set POSTRENDER_DEBUG=1 for the traceback and please report it\n"
    )
    return _failed(message, 70)


def _failed(message: str, code: int) -> int:
    """Say why nothing comes of it; return the exit code, or let Helm 4 show what was said."""
    if sys.stderr is not None:
        sys.stderr.write(message)
    from postrender.hosts import filter as host

    if sys.stdout is None or not host.in_helm_4(os.environ):
        return code
    sys.stdout.buffer.write(host.shown_by_helm_4(message))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    main()
