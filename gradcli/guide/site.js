"use strict";
// The search, which scores sections as `gradcli explain` does, and the keys.

const query = document.getElementById("query");
const hits = document.getElementById("hits");

const WEIGHTS = [10, 6, 2, 0.5]; // of a page's names, of what it is asked, of a heading, of the prose below it
const PAIRS = 0.5; // the weight of two words that are neighbours in the question, too
const [K, B] = [1.2, 0.75]; // of BM25

const stem = (word) => (word.length > 4 ? word.replace(/(ies|ing|ed|es|s|y)$/, "") : word);
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

const sections = SECTIONS.map(([page, title, anchor, heading, ...columns]) => {
  const counts = new Map();
  let length = 0;
  columns.forEach((column, k) => {
    const words = wordsOf(column).map(stem);
    length += words.length;
    words.forEach((word, i) => {
      for (const term of i ? [word, `${words[i - 1]} ${word}`] : [word]) {
        counts.set(term, (counts.get(term) ?? 0) + WEIGHTS[k]);
      }
    });
  });
  return { page, link: `${page}.html${anchor ? `#${anchor}` : ""}`, title, heading, counts, length };
});
const average = sections.reduce((sum, section) => sum + section.length, 0) / sections.length;

function scored(terms, weight, scores) {
  for (const term of new Set(terms)) {
    const found = sections.filter((section) => section.counts.has(term));
    const rarity = Math.log((sections.length - found.length + 0.5) / (found.length + 0.5));
    for (const section of found) {
      const count = section.counts.get(term);
      const score = (rarity * count * (K + 1)) / (count + K * (1 - B + (B * section.length) / average));
      scores.set(section, (scores.get(section) ?? 0) + weight * Math.max(score, 1e-6));
    }
  }
}

// The best section of each page, best first.
function ranked(text) {
  const words = wordsOf(text.replace(/([a-z])([A-Z])/g, "$1 $2"));
  const scores = new Map();
  scored(words.filter((word) => !EMPTY.includes(word)).map(stem), 1, scores);
  const pairs = words.slice(1).map((word, i) => [words[i], word]).filter((pair) => !pair.every((word) => EMPTY.includes(word)));
  scored(pairs.map((pair) => pair.map(stem).join(" ")), PAIRS, scores);
  const pages = new Set();
  const order = [...scores].sort((a, b) => b[1] - a[1]).map(([section]) => section);
  return order.filter((section) => !pages.has(section.page) && pages.add(section.page)).slice(0, 8);
}

function listItem(section) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = section.link;
  link.textContent = section.heading === section.title ? section.title : `${section.title}: ${section.heading}`;
  item.append(link);
  return item;
}

function show() {
  const found = ranked(query.value);
  hits.replaceChildren(...found.map(listItem));
  hits.hidden = !query.value.trim();
  if (!found.length) hits.textContent = "No page has a word of this.";
}

query.addEventListener("input", show);
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter") hits.querySelector("a")?.click();
  if (event.key === "ArrowDown") {
    event.preventDefault();
    hits.querySelector("a")?.focus();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    query.value = "";
    show();
    query.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  if (event.key === "/") {
    event.preventDefault();
    query.focus();
  }
  const turn = { n: "next", p: "prev" }[event.key];
  if (turn) document.querySelector(`a[rel=${turn}]`)?.click();
});

// On a narrow screen the list of pages begins closed.
if (matchMedia("(max-width: 760px)").matches) document.querySelector(".menu").open = false;
