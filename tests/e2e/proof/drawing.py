"""Who holds which node, before and after, as an SVG that is legible on light and dark pages."""

from __future__ import annotations

from .outcome import Outcome
from .record import Pair

STYLE = """\
    .paper { fill: #ffffff; stroke: #d0d7de; }
    .ink { fill: #1f2328; }
    .faint { fill: #59636e; }
    .node { fill: #f6f8fa; stroke: #8c959f; }
    .blue { fill: #0969da; }
    .green { fill: #1a7f37; }
    .on { fill: #ffffff; }
    .wait { fill: none; stroke-width: 1.5; stroke-dasharray: 5 4; }
    .wait.blue { stroke: #0969da; }
    .wait.green { stroke: #1a7f37; }
    .bad { fill: #cf222e; }
    .good { fill: #1a7f37; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117; stroke: #3d444d; }
      .ink { fill: #f0f6fc; }
      .faint { fill: #9198a1; }
      .node { fill: #151b23; stroke: #656c76; }
      .blue { fill: #1f6feb; }
      .green { fill: #238636; }
      .wait { fill: none; }
      .wait.blue { stroke: #4493f8; }
      .wait.green { stroke: #3fb950; }
      .bad { fill: #f85149; }
      .good { fill: #3fb950; }
    }
"""
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
WIDTH, GAP, LEFT = 84, 11, 20


def drawing(pair: Pair) -> str:
    """Return the drawing of a scenario with gangs named blue and green."""
    panels = [panel(one, title, 10 + 430 * n) for n, (one, title) in enumerate(zip(pair, TITLES, strict=True))]
    said = " ".join(f"{title}: {words(one)}" for one, title in zip(pair, TITLES, strict=True))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 300" role="img" aria-labelledby="title text"'
        f' font-family="{FONT}" font-size="14">\n'
        f'  <title id="title">Two gangs, and room for one: a run on a real scheduler</title>\n'
        f'  <desc id="text">{said}</desc>\n  <style>\n{STYLE}  </style>\n' + "".join(panels) + "</svg>\n"
    )


TITLES = ("Without postrender", "With postrender")


def panel(outcome: Outcome, title: str, x: int) -> str:
    """Return one half: nodes above, what waits below, and what it comes to."""
    lines = [f'<rect class="paper" x="{x}" y="10" width="410" height="280" rx="8"/>']
    lines.append(f'<text class="ink" x="{x + LEFT}" y="42" font-size="17" font-weight="600">{title}</text>')
    for number, (_, holder) in enumerate(outcome.nodes):
        left = x + LEFT + number * (WIDTH + GAP)
        lines.append(f'<rect class="node" x="{left}" y="62" width="{WIDTH}" height="92" rx="6"/>')
        lines.append(f'<text class="faint" x="{left + 10}" y="82">node {number + 1}</text>')
        if holder:
            lines += box(color(holder), left + 7, 92, WIDTH - 14, 52, waits=False)
    row = 0
    for gang in outcome.gangs:
        for _ in range(gang.pods - gang.bound):
            lines += box(color(gang.name), x + LEFT + row * (WIDTH + GAP) + 7, 190, WIDTH - 14, 40, waits=True)
            row += 1
    lines.append(f'<text class="faint" x="{x + LEFT}" y="180">{"Pending" if row else "Nothing waits"}</text>')
    mood = "bad" if outcome.partial else "good"
    lines.append(f'<text class="{mood}" x="{x + LEFT}" y="264" font-weight="600">{words(outcome)}</text>')
    return "  <g>\n" + "".join(f"    {line}\n" for line in lines) + "  </g>\n"


def box(kind: str, x: int, y: int, width: int, height: int, waits: bool) -> list[str]:
    """Return a pod."""
    classes, ink = (f"wait {kind}", "ink") if waits else (kind, "on")
    middle = f'x="{x + width // 2}" y="{y + height // 2 + 5}" text-anchor="middle"'
    return [
        f'<rect class="{classes}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>',
        f'<text class="{ink}" {middle}>{kind}</text>',
    ]


def color(gang: str) -> str:
    """Return the color that a gang is named by."""
    return "blue" if "blue" in gang else "green"


def words(outcome: Outcome) -> str:
    """Return what it comes to, in words."""
    whole = sum(gang.bound == gang.pods for gang in outcome.gangs)
    held = sum(gang.bound for gang in outcome.gangs if gang.partial)
    if held:
        return f"{held} nodes held, {whole or 'no'} model{'s' if whole > 1 else ''} serving."
    waiting = sum(gang.bound == 0 for gang in outcome.gangs)
    return f"{whole} serves whole, {waiting} waits and holds nothing."
