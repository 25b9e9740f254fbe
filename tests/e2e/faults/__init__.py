"""A proxy between a client and an API server that goes wrong where a test tells it to.

    with before(kubeconfig, tmp_path / "proxy") as (proxy, turned):
        proxy.add(Answer(429, retry_after=2), path="/podgroups", times=3)
        proxy.add(Cut("after"), method="PATCH", path="/status", times=1)  # the server did it, the client never hears
        start_the_client(turned)
        proxy.wait(watch=True, answered=True)
        proxy.strike(Error(410))  # into the watches that are open now
        assert busiest(proxy.seen(path="/podgroups"), seconds=5) <= 10

TLS in front with a certificate of its own, TLS to the server behind. What the client sends is passed on, its bearer
token included, unless the proxy has a client certificate to show: then the client's token stays here, for the server
would have two identities to choose from. HTTP/1.1 with keep-alive; HTTP/2 is not offered, and no client insists on it.

A request meets the first rule, in order of adding, that fits and is not used up; without one it is passed on. `path` is
a regular expression looked for in the target as it was sent, query included. Faults of the network as a whole are
contexts: `down()` refuses connections, `deaf()` accepts them (the kernel does) and never says a word, TLS included.

What a fault cannot do (an event of JSON in a watch of something else) is an error when the proxy ends.
"""

from .exchange import Pair, Server
from .kinds import Answer, Cut, End, Error, Fault, Hang, Slow
from .proxy import FaultProxy, before
from .records import Request, busiest
from .rules import Rule

__all__ = [
    "Answer",
    "Cut",
    "End",
    "Error",
    "Fault",
    "FaultProxy",
    "Hang",
    "Pair",
    "Request",
    "Rule",
    "Server",
    "Slow",
    "before",
    "busiest",
]
