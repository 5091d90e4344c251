"""`check --junit FILE` writes the verdicts for a CI service."""

import xml.etree.ElementTree as ET


def test_a_wrong_claim_is_a_failure_with_its_numbers(cli, tmp_path):
    path = tmp_path / "verdicts.xml"
    result = cli("check", "f=x**2*y", "df/dx=2*x*y", "df/dy=2*x**2", "--junit", str(path))
    assert result.status == 1
    suite = ET.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    right, wrong = suite
    assert (right.get("name"), right.find("failure")) == ("df/dx = 2*x*y", None)
    failure = wrong.find("failure")
    assert failure.get("type") == "wrong"
    assert "right: x**2" in failure.text


def test_a_file_that_cannot_be_written_is_an_error(cli, tmp_path):
    result = cli("check", "f=x**2", "df/dx=2*x", "--junit", str(tmp_path / "no" / "verdicts.xml"))
    assert result.status == 2
    assert "verdicts.xml" in result.err
