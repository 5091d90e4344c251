"""Verdicts as JUnit XML, which CI services read: a test case for each claim."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

from gradcli.errors import InputError
from gradcli.pages.check.verdicts import CheckResult, Verdict


def junit(results: Mapping[str, CheckResult | InputError]) -> bytes:
    """Return the verdicts as one XML file, a suite for each name; an error is that of a file that cannot be checked.

    A claim that is not right is a failure, as in the exit status.

    >>> from gradcli import check
    >>> junit({"gradcli check": check("f = x**2; df/dx = 2*x")}).splitlines()[1].decode()
    '<testsuite name="gradcli check" tests="1" failures="0">'
    """
    suites = [_suite(name, result) for name, result in results.items()]
    root = suites[0]
    if len(suites) > 1:
        root = ET.Element("testsuites")
        root.extend(suites)
    ET.indent(root)
    document: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(name: str, result: CheckResult | InputError) -> ET.Element:
    if isinstance(result, InputError):
        suite = ET.Element("testsuite", {"name": name, "tests": "1", "failures": "0", "errors": "1"})
        case = ET.SubElement(suite, "testcase", {"classname": "gradcli.check", "name": name})
        ET.SubElement(case, "error", {"message": result.message})
        return suite
    failures = sum(v.verdict != "right" for v in result.verdicts)
    suite = ET.Element("testsuite", {"name": name, "tests": str(len(result.verdicts)), "failures": str(failures)})
    for verdict in result.verdicts:
        named = {"classname": "gradcli.check", "name": f"{verdict.claim} = {verdict.said}"}
        case = ET.SubElement(suite, "testcase", named)
        if verdict.verdict != "right":
            failure = ET.SubElement(case, "failure", {"type": verdict.verdict, "message": verdict.why})
            failure.text = "\n".join(_details(verdict))
    return suite


def _details(verdict: Verdict) -> list[str]:
    """Return the numbers of a claim that is wrong, and the right formula where there is one."""
    lines = []
    if verdict.at is not None:
        where = ", ".join(f"{name} = {value.tolist()}" for name, value in verdict.at.items())
        entry = f"entry {verdict.entry}: " if verdict.entry else ""
        lines.append(f"{entry}yours is {verdict.yours!r}, right is {verdict.true!r}, at {where}")
    if verdict.formula:
        lines.append(f"right: {verdict.formula}")
    return lines
