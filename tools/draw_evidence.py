#!/usr/bin/env python3
"""Draws docs/evidence/curves.svg from docs/evidence/accuracy.csv: held-out accuracy by step, one
panel per teacher; and docs/evidence/plateau.svg from docs/evidence/accuracy-400.csv: accuracy and
length of the runs of 400 steps. Bold is the mean over seeds, faint each seed."""
import csv
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "evidence"
ARMS = (("grpo", "GRPO", "#222222", ""), ("antisd", "AntiSD, the paper's gate", "#1f5fa8", ""),
        ("antisd-two-sided", "AntiSD, two-sided gate", "#1f5fa8", "6 4"), ("sd", "SD", "#c0392b", "2 3"))
PLATEAU_ARMS = (("grpo", "GRPO", "#222222", ""), ("antisd", "AntiSD, the paper's gate", "#1f5fa8", ""),
                ("antisd-max_response_tokens200", "AntiSD, no term from 200 tokens on", "#2e8b57", "6 4"))
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, PANEL, GAP = 760, 330, 50, 34, 70, 320, 50


class Scale:
    """A panel's axes: `marks` of y with their text, steps up to `steps`."""

    def __init__(self, steps, step_marks, highest, marks):
        self.steps, self.step_marks, self.highest, self.marks = steps, step_marks, highest, marks

    def y(self, value):
        return TOP + (1 - value / self.highest) * (HEIGHT - TOP - BOTTOM)

    def path(self, curve, left):
        return "M" + " L".join(f"{left + step / self.steps * PANEL:.1f},{self.y(value):.1f}" for step, value in sorted(curve.items()))


def draw_panel(curves, arms, scale, title, left):
    bottom = HEIGHT - BOTTOM
    parts = [f'<text x="{left + PANEL / 2}" y="20" text-anchor="middle">{title.replace("<", "&lt;").replace(">", "&gt;")}</text>']
    for value, mark in scale.marks:
        y = scale.y(value)
        parts.append(f'<path d="M{left},{y:.1f} h{PANEL}" stroke="#ddd"/><text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{mark}</text>')
    for step in scale.step_marks:
        parts.append(f'<text x="{left + step / scale.steps * PANEL}" y="{bottom + 18}" text-anchor="middle">{step}</text>')
    for arm, _, colour, dash in arms:
        seeds = curves[arm]
        mean = {step: sum(seed[step] for seed in seeds.values()) / len(seeds) for step in next(iter(seeds.values()))}
        for seed in seeds.values():
            parts.append(f'<path d="{scale.path(seed, left)}" stroke="{colour}" stroke-opacity=".25" stroke-dasharray="{dash}" fill="none"/>')
        parts.append(f'<path d="{scale.path(mean, left)}" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}" fill="none"/>')
    return parts


def read(name, column):
    """teacher -> arm -> seed -> step -> value; the teacher is "" if the file has none."""
    curves = {}
    with open(FOLDER / name) as file:
        for row in csv.DictReader(file):
            if row[column] != "":
                arm = curves.setdefault(row.get("teacher", ""), {}).setdefault(row["arm"], {})
                arm.setdefault(row["seed"], {})[int(row["step"])] = float(row[column])
    return curves


def write(name, panels, arms, places):
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for number, (curves, scale, title) in enumerate(panels):
        parts += draw_panel(curves, arms, scale, title, LEFT + number * (PANEL + GAP))
    for x, (_, label, colour, dash) in zip(places, arms):
        parts.append(f'<path d="M{x},{HEIGHT - 20} h30" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>'
                     f'<text x="{x + 36}" y="{HEIGHT - 16}">{label}</text>')
    (FOLDER / name).write_text("\n".join(parts + ["</svg>"]) + "\n")


def percents(highest):
    return [(five / 100, f"{five} %") for five in range(0, highest + 1, 5)]


def main():
    accuracy = read("accuracy.csv", "accuracy")
    scale = Scale(90, range(0, 91, 30), 0.28, percents(25))
    write("curves.svg", ((accuracy["less-deliberate"], scale, "less deliberate teacher (u < 0 on Wait)"),
                         (accuracy["persistent"], scale, "more persistent teacher (u > 0)")), ARMS, (50, 150, 380, 600))
    steps = range(0, 401, 100)
    write("plateau.svg", ((read("accuracy-400.csv", "accuracy")[""], Scale(400, steps, 0.3, percents(30)), "held-out accuracy"),
                          (read("accuracy-400.csv", "length")[""], Scale(400, steps, 250, [(v, v) for v in range(0, 251, 50)]),
                           "mean length of the responses, tokens")), PLATEAU_ARMS, (50, 190, 440))


if __name__ == "__main__":
    main()
