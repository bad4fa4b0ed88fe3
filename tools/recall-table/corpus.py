"""Collects dialogues from checkouts of three public data sets, one JSON line per dialogue.

Each line is {"source": NAME, "turns": [[SPEAKER, TEXT], ...]}.
"""

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

Turn = tuple[str, str]

# A self-dialogue has up to this many sentences, in numbered columns.
MAX_SELF_DIALOGUE_SENTENCES = 39
# The split holds one line per turn with the whole dialogue before it, so that neighbouring lines repeat each other.
TASKMASTER_SPLIT_LINE_STEP = 7


def read_self_dialogues(folder: Path) -> Iterator[list[Turn]]:
    """Reads the Self-dialogue Corpus: one person writes both sides of a conversation."""
    for path in sorted((folder / "corpus").rglob("*.csv"), key=Path.as_posix):
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                yield [
                    ("AB"[number % 2], row.get(f"Answer.sentence{number}") or "")
                    for number in range(1, MAX_SELF_DIALOGUE_SENTENCES + 1)
                ]


def read_persona_chats(folder: Path) -> Iterator[list[Turn]]:
    """Reads the validation and test parts of Synthetic-Persona-Chat."""
    for part in ("valid", "test"):
        path = folder / "data" / f"Synthetic-Persona-Chat_{part}.csv"
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                lines = row["Best Generated Conversation"].split("\n")
                matches = (re.match(r"User (\d): (.*)", line) for line in lines)
                yield [(match[1], match[2]) for match in matches if match]


def read_taskmaster(folder: Path) -> Iterator[list[Turn]]:
    """Reads Taskmaster-3 (rated dialogues and training split) and the dialogues of Taskmaster-4."""
    for path in sorted((folder / "TM-3-2020" / "reward").glob("*.json")):
        yield from read_taskmaster_ratings(path)
    yield from read_taskmaster_split(folder / "TM-3-2020" / "splits" / "train" / "train-bc.tsv")
    for path in sorted((folder / "TM-4-2024" / "data").glob("data_*.json")):
        yield from read_taskmaster_dialogues(path)


def read_taskmaster_dialogues(path: Path) -> Iterator[list[Turn]]:
    for dialogue in json.loads(path.read_text(encoding="utf-8", errors="replace")):
        yield [(turn["speaker"], turn.get("text") or "") for turn in dialogue["utterances"]]


def read_taskmaster_ratings(path: Path) -> Iterator[list[Turn]]:
    """Reads each dialogue once, although the file repeats it for every rated reply."""
    seen = set()
    for record in json.loads(path.read_text(encoding="utf-8", errors="replace")):
        if record["conversation_id"] in seen:
            continue
        seen.add(record["conversation_id"])
        try:
            context = json.loads(record["context"])
        except json.JSONDecodeError:
            # Some contexts are cut off in the published file.
            continue
        yield [(turn["role"], turn.get("text") or "") for turn in context if turn.get("role") in ("user", "agent")]


def read_taskmaster_split(path: Path) -> Iterator[list[Turn]]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for line in lines[::TASKMASTER_SPLIT_LINE_STEP]:
        yield re.findall(r"<([UA])>([^<]*)", line)


def clean_turns(turns: Iterable[Turn]) -> list[Turn]:
    """Joins lines and drops empty turns."""
    cleaned = ((speaker, re.sub(r"\s+", " ", text).strip()) for speaker, text in turns)
    return [(speaker, text) for speaker, text in cleaned if text]


def write_source(name: str, dialogues: Iterable[list[Turn]], out) -> None:
    """Writes the dialogues of two turns or more and reports their size."""
    dialogue_count = turn_count = word_count = 0
    for dialogue in dialogues:
        turns = clean_turns(dialogue)
        if len(turns) < 2:
            continue
        out.write(json.dumps({"source": name, "turns": turns}) + "\n")
        dialogue_count += 1
        turn_count += len(turns)
        word_count += sum(len(text.split()) for _, text in turns)
    if dialogue_count == 0:
        sys.exit(f"No dialogues of {name} found. Check that the folder is a checkout of the data set.")
    print(f"{name}: {dialogue_count} dialogues, {turn_count} turns, {word_count} words", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--self-dialogue", type=Path, required=True, help="checkout of jfainberg/self_dialogue_corpus")
    parser.add_argument(
        "--persona-chat", type=Path, required=True, help="checkout of google-research-datasets/Synthetic-Persona-Chat"
    )
    parser.add_argument(
        "--taskmaster", type=Path, required=True, help="checkout of google-research-datasets/Taskmaster"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write, for example dialogues.jsonl")
    options = parser.parse_args()
    csv.field_size_limit(10**9)
    with options.out.open("w", encoding="utf-8") as out:
        write_source("self-dialogue", read_self_dialogues(options.self_dialogue), out)
        write_source("persona-chat", read_persona_chats(options.persona_chat), out)
        write_source("taskmaster", read_taskmaster(options.taskmaster), out)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} does not exist. Use checkouts of the data sets.")
