#!/usr/bin/env python3
"""Draws docs/phi.svg: what AntiSD adds to a token's advantage, compared with default
self-distillation."""
import math
import pathlib

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 24, 50
U_LIMIT, Y_LOW, Y_HIGH = 5.0, -2.4, 2.4
LAMBDA = 0.5


def phi(u):
    return (max(u, 0) + math.log1p(math.exp(-abs(u))) - math.log(2)) / 2


def x_of(u):
    return LEFT + (u + U_LIMIT) / (2 * U_LIMIT) * (WIDTH - LEFT - RIGHT)


def y_of(value):
    return TOP + (Y_HIGH - value) / (Y_HIGH - Y_LOW) * (HEIGHT - TOP - BOTTOM)


def path(function):
    points = [-U_LIMIT + i * 2 * U_LIMIT / 200 for i in range(201)]
    return "M" + " L".join(f"{x_of(u):.1f},{y_of(function(u)):.1f}" for u in points)


def main():
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<rect x="{x_of(-U_LIMIT)}" y="{TOP}" width="{x_of(0) - x_of(-U_LIMIT):.1f}" '
        f'height="{HEIGHT - TOP - BOTTOM}" fill="#eef6ff"/>',
        f'<path d="M{x_of(-U_LIMIT)},{y_of(0):.1f} H{x_of(U_LIMIT)} M{x_of(0):.1f},{TOP} '
        f'V{HEIGHT - BOTTOM}" stroke="#999" fill="none"/>',
        f'<path d="{path(lambda u: LAMBDA * u)}" stroke="#c0392b" stroke-dasharray="6 4" fill="none" '
        'stroke-width="2"/>',
        f'<path d="{path(lambda u: -LAMBDA * phi(u))}" stroke="#1f5fa8" fill="none" stroke-width="3"/>',
    ]
    for u in range(-4, 5, 2):
        parts.append(f'<text x="{x_of(u):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{u}</text>')
    for value in (-2, -1, 0, 1, 2):
        parts.append(f'<text x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end">{value}</text>')
    label_y = HEIGHT - 12
    parts += [
        f'<text x="{x_of(0):.1f}" y="{label_y}" text-anchor="middle">u = t - s: how much more likely the '
        'token is with the solution in view</text>',
        f'<text x="{x_of(-4.9):.1f}" y="{TOP + 16}" fill="#555">the teacher would not have written it</text>',
        f'<text x="{x_of(0.1):.1f}" y="{TOP + 16}" fill="#555">the solution gives it away</text>',
        f'<text x="{x_of(2.6):.1f}" y="{y_of(1.75):.1f}" fill="#c0392b">SD: +0.5 u</text>',
        f'<text x="{x_of(2.6):.1f}" y="{y_of(-1.1):.1f}" fill="#1f5fa8">AntiSD: -0.5 phi(u)</text>',
        "</svg>",
    ]
    target = pathlib.Path(__file__).resolve().parent.parent / "docs" / "phi.svg"
    target.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
