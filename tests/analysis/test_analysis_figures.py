"""What the figures show: one unit for every player, and bands that stay where the quantity can be."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from banditlab.analysis import load, write_report
from banditlab.analysis.arena import arenas
from banditlab.analysis.curves import mistake_curves, relative_panels
from banditlab.analysis.look import name_ticks, new_figure, shared_legend, styled, styles
from banditlab.analysis.plots import mistakes_against_costs, mistakes_against_rounds, relative_against_rounds
from banditlab.analysis.statistics import Interval


def text_of(folder) -> str:
    page = write_report(folder.out).read_text(encoding="utf-8")
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def in_two_units(new_folder):
    folder = new_folder()
    for repetition in range(4):
        for bound in (1.0, 3.0):
            folder.add_comparator(repetition, bound, 60.0)
        for gamma in (0.1, 0.2):
            for bound in (1.0, 3.0):
                settings = {"gamma": gamma, "norm_bound": bound}
                folder.add_run("bits", repetition, 80.0, written=settings, bound=7.0, bound_unit="bits")
                folder.add_run("nats", repetition, 80.0, written=settings, bound=7.0, bound_unit="nats")
    folder.write()
    return folder


def test_figures_measure_every_player_in_nats(new_folder):
    arena = arenas(load(in_two_units(new_folder).out))[0]
    for panel in relative_panels(arena):
        assert [curve.mean[-1] for curve in panel.curves] == pytest.approx([20.0, 20.0])
        assert {curve.label: (curve.bound.size > 0, curve.bound_in_bits, curve.vacuous) for curve in panel.curves} == {
            "bits": (False, True, False),
            "nats": (True, False, False),
        }
        legend = relative_against_rounds(panel, styles(["bits", "nats"])).legends[0]
        assert {text.get_text() for text in legend.get_texts()} == {
            f"bits γ=0.1 B={panel.norm_bound:.0f}\n   bound in bits: see the table",
            f"nats γ=0.1 B={panel.norm_bound:.0f}\n   bound: 7.0",
            "min(bound, rounds)",
        }
        many = replace(panel, curves=20 * [curve for curve in panel.curves if len(curve.bound)])
        figure = relative_against_rounds(many, styles(["bits", "nats"]))
        assert figure.legends[0].get_window_extent().height < figure.bbox.height


def test_only_the_bounds_table_speaks_of_bits(new_folder):
    text = text_of(in_two_units(new_folder))
    assert "[bits]" not in text
    assert "In bits, loss(U) is the same model’s loss divided by ln 2." in text
    assert "80.0 86.6 bits −6.6 7.0 holds" in text
    assert "80.0 60.0 nats 20.0 7.0 exceeded" in text


def test_bands_and_whiskers_stay_between_nothing_and_everything(new_folder):
    folder = new_folder(repetitions=2)
    for repetition, value in enumerate((10.0, 90.0)):
        folder.add_run("wild", repetition, value)
        folder.add_comparator(repetition, 1.0, 30.0, gap=1.0)
    folder.write()
    arena = arenas(load(folder.out))[0]
    [curve] = mistake_curves(arena)
    assert (curve.low >= 0).all()
    assert (curve.high == curve.rounds).all()
    [panel] = relative_panels(arena)
    assert (panel.curves[0].low[-1], panel.curves[0].high[-1]) == pytest.approx((0 - 30, 100 - 29))
    assert "0.0 to 100.0" in text_of(folder)


def test_who_has_fewer_mistakes_at_no_higher_cost_is_joined():
    at = {"c": (3.0, 0.3), "b": (2.0, 0.3), "a": (1.0, 0.5), "d": (4.0, 0.2), "oracle": (0.5, 0.1)}
    rows = [
        SimpleNamespace(
            label=name, name=name, cost=cost, mistakes=Interval(rate, rate, rate, 3, "t"), constant=name == "oracle"
        )
        for name, (cost, rate) in at.items()
    ]
    figure = mistakes_against_costs(rows, styles("abcd"))
    front, *points = figure.axes[0].lines
    assert np.transpose(front.get_data()).tolist() == [[1.0, 0.5], [2.0, 0.3], [4.0, 0.2]]
    assert [(*point.get_xdata(), *point.get_ydata()) for point in points] == list(at.values())
    assert [point.get_fillstyle() for point in points] == ["full"] * 4 + ["none"]
    assert [text.get_text() for text in figure.legends[0].get_texts()][3:] == ["d: 20.0 %", "oracle: 10.0 %"]


def test_one_legend_for_all_axes_names_everything_once():
    figure = new_figure(2.0)
    axes = figure.subplots(1, 2)
    for ax, labels in zip(axes, (["b", "c"], ["a", "b", "_hidden"])):
        for label in labels:
            ax.plot([0, 1], [0, 1], label=label)
    shared_legend(figure, axes, first=["nowhere", "a"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]


@pytest.mark.parametrize("axis", ["x", "y"])
def test_ticks_are_plain_numbers(axis):
    @styled
    def draw():
        figure = new_figure(2.0)
        ax = figure.subplots()
        ax.plot([1, 100], [1, 100])
        ax.set(xscale="log", yscale="log")
        name_ticks(ax, [1, 2.5, 100], axis=axis)
        return figure

    [ax] = draw().axes
    chosen = getattr(ax, f"{axis}axis")
    assert [text.get_text() for text in chosen.get_ticklabels()] == ["1", "2.5", "100"]
    assert len(ax.xaxis.get_minorticklocs()) == len(ax.yaxis.get_minorticklocs()) == 0


def test_the_axis_of_mistakes_ends_below_the_smallest_share(new_folder):
    """Its curves are shares of the rounds so far, from the first round that the axis shows."""
    folder = new_folder()
    for repetition in range(3):
        folder.add_run("few", repetition, 3.0)
        folder.add_run("many", repetition, 80.0)
    folder.write()
    curves = mistake_curves(arenas(load(folder.out))[0])
    [ax] = mistakes_against_rounds(curves, styles(["few", "many"])).axes
    shown = [line.get_ydata() for line in ax.lines]
    for curve, line in zip(curves, shown, strict=True):
        assert line == pytest.approx(curve.mean / curve.rounds)
    first = ax.get_xlim()[0]
    least = min(float(line[curve.rounds >= first].min()) for curve, line in zip(curves, shown, strict=True))
    assert ax.get_ylim() == pytest.approx((min(0.5, 0.8 * least), 1.06))
