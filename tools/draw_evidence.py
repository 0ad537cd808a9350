#!/usr/bin/env python3
"""Draws docs/evidence/curves.svg from docs/evidence/accuracy.csv: held-out accuracy by step, a panel a teacher.
Bold is the mean over seeds, faint each seed."""
import csv
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "evidence"
PANELS = (("less-deliberate", "less deliberate teacher (u < 0 on Wait)"), ("persistent", "more persistent teacher (u > 0)"))
ARMS = (("grpo", "GRPO", "#222222", ""), ("antisd", "AntiSD, the paper's gate", "#1f5fa8", ""),
        ("antisd-two-sided", "AntiSD, two-sided gate", "#1f5fa8", "6 4"), ("sd", "SD", "#c0392b", "2 3"))
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, PANEL, GAP = 760, 330, 50, 34, 70, 320, 50
STEPS, HIGHEST = 90, 0.28


def path(curve, left):
    points = [(left + step / STEPS * PANEL, TOP + (1 - value / HIGHEST) * (HEIGHT - TOP - BOTTOM)) for step, value in sorted(curve.items())]
    return "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def draw_panel(curves, title, left):
    bottom = HEIGHT - BOTTOM
    parts = [f'<text x="{left + PANEL / 2}" y="20" text-anchor="middle">{title.replace("<", "&lt;").replace(">", "&gt;")}</text>']
    for tenth in range(0, 6):
        y = TOP + (1 - tenth * 0.05 / HIGHEST) * (bottom - TOP)
        parts.append(f'<path d="M{left},{y:.1f} h{PANEL}" stroke="#ddd"/><text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{5 * tenth} %</text>')
    for step in range(0, STEPS + 1, 30):
        parts.append(f'<text x="{left + step / STEPS * PANEL}" y="{bottom + 18}" text-anchor="middle">{step}</text>')
    for arm, _, colour, dash in ARMS:
        seeds = curves[arm]
        mean = {step: sum(seed[step] for seed in seeds.values()) / len(seeds) for step in next(iter(seeds.values()))}
        for seed in seeds.values():
            parts.append(f'<path d="{path(seed, left)}" stroke="{colour}" stroke-opacity=".25" stroke-dasharray="{dash}" fill="none"/>')
        parts.append(f'<path d="{path(mean, left)}" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}" fill="none"/>')
    return parts


def main():
    curves = {}
    with open(FOLDER / "accuracy.csv") as file:
        for row in csv.DictReader(file):
            arm = curves.setdefault(row["teacher"], {}).setdefault(row["arm"], {})
            arm.setdefault(row["seed"], {})[int(row["step"])] = float(row["accuracy"])
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for number, (teacher, title) in enumerate(PANELS):
        parts += draw_panel(curves[teacher], title, LEFT + number * (PANEL + GAP))
    for x, (_, name, colour, dash) in zip((50, 150, 380, 600), ARMS):
        parts.append(f'<path d="M{x},{HEIGHT - 20} h30" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>'
                     f'<text x="{x + 36}" y="{HEIGHT - 16}">{name}</text>')
    (FOLDER / "curves.svg").write_text("\n".join(parts + ["</svg>"]) + "\n")


if __name__ == "__main__":
    main()
