"""The picture is well-formed, says what the plan says, and keeps text inside its boxes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from headrace.plan.expr import Call, ColumnRef, Literal
from headrace.plan.logical import Filter
from headrace.plan.placed import Job
from headrace.plan.types import DataType
from headrace.service.explain import JobData, job_data
from headrace.service.picture import html, svg
from tests.unit.service.sample import counted, project, scan

SVG = "{http://www.w3.org/2000/svg}"


def _jobs(root: Path) -> list[JobData]:
    found = project(root, ("a", "b"))
    nasty = Call("=", (ColumnRef("k", DataType.INT), Literal(7, DataType.INT)))
    return [
        job_data(found, Job("a", "a", "local", counted())),
        job_data(found, Job("b", "b", "local", Filter(scan(), nasty))),
    ]


def _texts(element: ET.Element) -> list[str]:
    return [t.text or "" for t in element.iter(f"{SVG}text")]


def test_every_operator_and_both_sinks_are_drawn(tmp_path: Path) -> None:
    texts = _texts(ET.fromstring(svg(_jobs(tmp_path))))
    for wanted in ("a on local", "b on local", "Stream n0", "Window n1", "Aggregate n2", "Filter n1"):
        assert wanted in texts
    assert texts.count("Sink") == 2
    assert "range 300s, slide 60s on ts" in texts


def test_as_many_arrows_as_edges(tmp_path: Path) -> None:
    root = ET.fromstring(svg(_jobs(tmp_path)))
    arrows = [p for p in root.iter(f"{SVG}path") if p.get("marker-end")]
    assert len(arrows) == 3 + 2


def test_text_is_escaped(tmp_path: Path) -> None:
    jobs = _jobs(tmp_path)
    jobs[0]["plan"][0]["detail"] = "a < b AND c > '<script>' & \"d\""
    jobs[0]["text"] = "<script>"
    drawn = svg(jobs[:1])
    assert "<script>" not in drawn
    assert "a < b AND c > '<script>' & \"d\"" in " ".join(_texts(ET.fromstring(drawn)))
    assert "<script>" not in html("<script>", jobs[:1])


def test_long_details_are_wrapped_and_cut(tmp_path: Path) -> None:
    jobs = _jobs(tmp_path)
    jobs[0]["plan"][0]["detail"] = "x" * 5000
    texts = _texts(ET.fromstring(svg(jobs[:1])))
    # 11 px monospace is 6.6 px a character; the box is 264 wide and the text starts 10 in.
    assert max(len(t) for t in texts) * 6.6 + 10 < 264
    assert "..." in texts


def test_many_jobs_are_put_in_rows(tmp_path: Path) -> None:
    root = ET.fromstring(svg(_jobs(tmp_path)[:1] * 12))
    assert int(root.get("width", "0")) <= 1520
    frames = [g.get("transform") for g in root.findall(f"{SVG}g")]
    assert len(set(frames)) == 12


def test_no_jobs_is_a_picture_too() -> None:
    assert ET.fromstring(svg([])).tag == f"{SVG}svg"


def test_the_page_holds_picture_and_text(tmp_path: Path) -> None:
    jobs = _jobs(tmp_path)
    page = html("plan", jobs)
    assert page.count("<svg") == 1
    assert jobs[0]["text"].splitlines()[1] in page
