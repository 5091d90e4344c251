"""Questions as people ask them are answered from the right page.

`questions.txt` has the questions, as on Stack Overflow, discuss.pytorch.org and in PyTorch's issues; some are misspelt,
have code in them or two words only; many are titles of issues, which say less.  In front of each are the topics that
answer it, which were chosen before the answer was seen.  The sixty of `unseen.txt` were collected, and committed,
before the search or a page was changed; neither has been improved with them.
"""

from __future__ import annotations

from pathlib import Path

from conftest import each, some

from gradcli.guide.messages import find
from gradcli.guide.search import answers, words_of
from gradcli.guide.topics import topic_named, topics


def read(name):
    """The questions of a file, each behind the topics that answer it."""
    lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()
    return [(set(line.partition(" | ")[0].split()), line.partition(" | ")[2]) for line in lines]


QUESTIONS, UNSEEN = read("questions.txt"), read("unseen.txt")


def shown(question):
    """The topics whose sections `gradcli explain` shows: one of that name, or those of the best sections."""
    topic = topic_named(question)
    return [topic.name] if topic else [hit.topic.name for hit in answers(question)]


def share(asked, count):
    """The share of questions of which one of the first sections is right, and the others as text."""
    wrong = [
        f"{question}: {shown(question)}" for topics, question in asked if topics.isdisjoint(shown(question)[:count])
    ]
    return 1 - len(wrong) / len(asked), "\n".join(wrong)


def test_the_right_section_is_among_the_three_that_are_shown():
    right, wrong = share(some(QUESTIONS), 3)
    assert right >= 0.95, wrong


def test_the_right_section_is_mostly_the_first():
    right, wrong = share(some(QUESTIONS), 1)
    assert right >= 0.8, wrong


def test_questions_that_nobody_has_seen_are_answered():
    right, wrong = share(UNSEEN, 3)
    assert right >= 0.9, wrong


def test_there_are_enough_questions_on_most_topics():
    assert len({question for _, question in QUESTIONS}) == len(QUESTIONS) >= 500
    accepted = set().union(*(topics for topics, _ in QUESTIONS + UNSEEN))
    assert accepted <= set(topics())
    assert len(accepted) >= 0.9 * len(topics())


@each("section", [s for topic in topics().values() for s in topic.sections if s.messages])
def test_the_first_sentence_of_a_message_finds_it_as_the_whole_does(section):
    first = section.messages[0].partition(". ")[0].replace("…", " 7")
    assert find(first).section == section


@each("text", ["", "xyzzy", "how do I bake bread", "KeyError: 'quux'", '"', "\0", "a*"])
def test_a_text_of_which_no_section_has_a_word_has_no_answer(text):
    assert answers(text) == []


def test_the_heading_of_a_section_leads_to_it_alone():
    below = [s.heading for topic in topics().values() for s in topic.sections[1:] if s.heading != "Messages"]
    headings = [words_of(heading) for heading in below]
    assert [words for words in headings if headings.count(words) > 1] == []
