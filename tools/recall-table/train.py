"""Trains the word table: one vector and one weight per row, distilled from the teacher's vectors of whole texts.

The vector of a text is the weighted sum of the vectors of its rows, scaled to length 1. Training makes the similarities
of such vectors follow the similarities of the teacher's.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

TEACHER_DIMENSIONS = 512
# A row has values of -7 to 7 steps. Cutting its largest values by up to a fifth makes the steps finer for the others.
MAX_LEVEL = 7
CUT_SHARE = 0.8
# softplus(0.54) is about 1, so that a row with the raw weight 0 counts once.
WEIGHT_OFFSET = 0.54
INITIAL_SCALE = 3
INITIAL_NOISE = 0.02
TURN_ROWS = 40
QUERY_ROWS = 32
WORD_SHARE = 1 / 8
PAIR_RUN = 4
TEMPERATURE = 0.05
TABLE_RATE = 2e-3
HEAD_RATE = 1.5e-3
MIN_RATE_SHARE = 0.02
WARM_UP_STEPS = 200
MAX_GRADIENT_NORM = 1.0
HELD_OUT_PART = 50
REPORT_STEPS = 1000


class Examples:
    """Output of examples.ts and teacher.py, in the memory of the device."""

    def __init__(self, folder: Path, teacher: Path, device: str) -> None:
        self.device = device
        summary = json.loads((folder / "examples.json").read_text())
        self.rows: int = summary["rows"]
        self.row_numbers = self.to_device(np.fromfile(folder / "rows.u16", "<u2").astype(np.int32))
        self.offsets = self.to_device(np.fromfile(folder / "rows.offsets.u32", "<u4").astype(np.int64))
        self.lengths = self.offsets[1:] - self.offsets[:-1]
        vectors = np.load(teacher)
        if len(vectors) != summary["texts"]:
            sys.exit(f"{teacher} has {len(vectors)} vectors for {summary['texts']} texts. Run teacher.py again.")
        self.teacher = self.to_device(vectors)
        numbers = torch.arange(summary["texts"], device=self.device)
        is_turn = numbers < summary["firstWordText"]
        self.turns = torch.nonzero(is_turn & (self.lengths >= 2))[:, 0]
        self.words = torch.nonzero(~is_turn & (self.lengths >= 1))[:, 0]
        self.pairs, self.held_out_pairs = self.split_pairs(folder, summary["conversations"])

    def to_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def split_pairs(self, folder: Path, conversations: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keeps the pairs of one conversation in fifty for the check; of these only questions with replies are used.

        The columns are query, turn, conversation and kind; kind 0 is a question with its reply.
        """
        pairs = self.to_device(np.fromfile(folder / "pairs.i32", "<i4").reshape(-1, 4).astype(np.int64))
        shuffled = torch.randperm(conversations, generator=torch.Generator().manual_seed(5))
        is_held_out = torch.zeros(conversations, dtype=torch.bool)
        is_held_out[shuffled[: conversations // HELD_OUT_PART]] = True
        chosen = is_held_out.to(self.device)[pairs[:, 2]]
        return pairs[~chosen], pairs[chosen & (pairs[:, 3] == 0)]

    def rows_of(self, texts: torch.Tensor, max_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the row numbers of texts as a matrix, and a mask of its used places."""
        starts = self.offsets[texts]
        lengths = self.lengths[texts].clamp(max=max_rows)
        positions = torch.arange(max(1, int(lengths.max())), device=self.device)[None]
        mask = positions < lengths[:, None]
        numbers = self.row_numbers[(starts[:, None] + positions).clamp(max=self.row_numbers.numel() - 1)].long()
        return numbers.masked_fill(~mask, 0), mask

    def teacher_of(self, texts: torch.Tensor) -> torch.Tensor:
        return self.teacher[texts].float()


class Table(nn.Module):
    """Trainable table; its last row is padding."""

    def __init__(self, rows: int, dimensions: int) -> None:
        super().__init__()
        self.padding = rows
        self.vectors = nn.Parameter(torch.randn(rows + 1, dimensions) * INITIAL_NOISE)
        self.raw_weights = nn.Parameter(torch.zeros(rows + 1, 1))
        # Maps to the teacher's space during training only.
        self.head = nn.Linear(dimensions, TEACHER_DIMENSIONS)

    def forward(self, numbers: torch.Tensor, mask: torch.Tensor, is_rounded: bool) -> torch.Tensor:
        numbers = numbers.masked_fill(~mask, self.padding)
        table = round_straight_through(self.vectors) if is_rounded else self.vectors
        vectors = F.embedding(numbers, table, padding_idx=self.padding)
        raw_weights = F.embedding(numbers, self.raw_weights, padding_idx=self.padding)[..., 0]
        weights = F.softplus(raw_weights + WEIGHT_OFFSET) * mask
        return F.normalize((weights[..., None] * vectors).sum(1), dim=-1)


def step_sizes(vectors: torch.Tensor) -> torch.Tensor:
    return (vectors.abs().amax(1, keepdim=True) * CUT_SHARE / MAX_LEVEL).clamp(min=1e-8)


def round_to_levels(vectors: torch.Tensor) -> torch.Tensor:
    return (vectors / step_sizes(vectors)).round().clamp(-MAX_LEVEL, MAX_LEVEL)


def round_straight_through(vectors: torch.Tensor) -> torch.Tensor:
    """Rounds as the packed table does, but lets gradients pass as if there were no rounding."""
    rounded = round_to_levels(vectors) * step_sizes(vectors)
    return vectors + (rounded - vectors).detach()


def initial_vectors(examples: Examples, dimensions: int) -> torch.Tensor:
    """Starts each row at the teacher's vector of its single word, on the main axes of the turns' vectors."""
    single = examples.words[examples.lengths[examples.words] == 1]
    rows = examples.row_numbers[examples.offsets[single]].long()
    sums = torch.zeros(examples.rows, TEACHER_DIMENSIONS, device=examples.device)
    counts = torch.zeros(examples.rows, device=examples.device)
    sums.index_add_(0, rows, examples.teacher_of(single))
    counts.index_add_(0, rows, torch.ones_like(rows, dtype=torch.float))
    sample = examples.teacher_of(examples.turns[::9])
    mean = sample.mean(0)
    _, _, axes = torch.pca_lowrank(sample - mean, q=dimensions, center=False, niter=4)
    vectors = (sums / counts.clamp(min=1)[:, None] - mean) @ axes * INITIAL_SCALE
    noise = torch.randn_like(vectors) * INITIAL_NOISE
    # Rows without a word of their own, mostly stopwords and hash buckets, start as noise.
    return torch.where(counts[:, None] > 0, vectors, noise)


def initial_weights(examples: Examples) -> torch.Tensor:
    """Starts each weight at the rarity of its row among the turns (inverse document frequency)."""
    sample = examples.turns[::3]
    numbers, mask = examples.rows_of(sample, 48)
    keys = numbers + torch.arange(len(sample), device=examples.device)[:, None] * examples.rows
    found = keys[mask].unique() % examples.rows
    frequency = torch.bincount(found, minlength=examples.rows).float()
    rarity = torch.log(1 + (len(sample) - frequency + 0.5) / (frequency + 0.5))
    return (rarity / rarity.mean() - 1).clamp(-2, 2)


def divergence(student: torch.Tensor, teacher: torch.Tensor, skip: torch.Tensor | None = None) -> torch.Tensor:
    """Kullback-Leibler divergence of the rows of two similarity matrices after softmax."""
    if skip is not None:
        student, teacher = student.masked_fill(skip, -1e4), teacher.masked_fill(skip, -1e4)
    expected = (teacher / TEMPERATURE).log_softmax(-1)
    actual = (student / TEMPERATURE).log_softmax(-1)
    return (expected.exp() * (expected - actual)).sum(-1).mean()


def draw(values: torch.Tensor, count: int) -> torch.Tensor:
    return values[torch.randint(0, len(values), (count,), device=values.device)]


def draw_pairs(pairs: torch.Tensor, count: int) -> torch.Tensor:
    """Draws runs of neighbouring pairs, so that turns of one conversation are compared with each other."""
    starts = torch.randint(0, len(pairs) - PAIR_RUN, (count // PAIR_RUN,), device=pairs.device)
    return pairs[(starts[:, None] + torch.arange(PAIR_RUN, device=pairs.device)).reshape(-1)]


def encode(table: Table, examples: Examples, texts: torch.Tensor, max_rows: int, is_rounded: bool) -> torch.Tensor:
    with torch.autocast(examples.device, dtype=torch.bfloat16):
        vectors = table(*examples.rows_of(texts, max_rows), is_rounded)
    return vectors.float()


def compute_losses(
    table: Table, examples: Examples, options: argparse.Namespace, is_rounded: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the distance to the teacher's vectors, and the divergence among texts and from queries to turns."""
    word_count = int(options.batch * WORD_SHARE)
    texts = torch.cat([draw(examples.turns, options.batch - word_count), draw(examples.words, word_count)])
    vectors, expected = encode(table, examples, texts, TURN_ROWS, is_rounded), examples.teacher_of(texts)
    with torch.autocast(examples.device, dtype=torch.bfloat16):
        mapped = table.head(vectors)
    distance = (1 - F.cosine_similarity(mapped.float(), expected, dim=-1)).mean()
    diagonal = torch.eye(len(texts), dtype=torch.bool, device=examples.device)
    among_texts = divergence(vectors @ vectors.T, expected @ expected.T, diagonal)
    queries, turns = draw_pairs(examples.pairs, options.pairs)[:, :2].unbind(1)
    student = encode(table, examples, queries, QUERY_ROWS, is_rounded) @ encode(
        table, examples, turns, TURN_ROWS, is_rounded
    ).T
    to_turns = divergence(student, examples.teacher_of(queries) @ examples.teacher_of(turns).T)
    return distance, among_texts, to_turns


def train(table: Table, examples: Examples, options: argparse.Namespace) -> int:
    """Trains for the given time and returns the number of steps; the second half rounds vectors as packing does."""
    groups = [
        {"params": [table.vectors, table.raw_weights], "lr": TABLE_RATE},
        {"params": table.head.parameters(), "lr": HEAD_RATE},
    ]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.98))
    rates = [group["lr"] for group in optimizer.param_groups]
    totals = torch.zeros(3, device=examples.device)
    started = time.monotonic()
    step = 0
    while (progress := (time.monotonic() - started) / options.seconds) < 1:
        cosine = 0.5 * (1 + math.cos(math.pi * progress))
        share = min(1, step / WARM_UP_STEPS + 1e-3) * (MIN_RATE_SHARE + (1 - MIN_RATE_SHARE) * cosine)
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * share
        losses = compute_losses(table, examples, options, is_rounded=progress > 0.5)
        optimizer.zero_grad(set_to_none=True)
        (2 * losses[0] + losses[1] + losses[2]).backward()
        nn.utils.clip_grad_norm_(table.parameters(), MAX_GRADIENT_NORM)
        optimizer.step()
        step += 1
        totals += torch.stack(losses).detach()
        if step % REPORT_STEPS == 0:
            means = ", ".join(f"{value:.4f}" for value in (totals / REPORT_STEPS).tolist())
            print(f"step {step}, {progress:.0%}: losses {means}", file=sys.stderr, flush=True)
            totals.zero_()
    return step


def check(examples: Examples, score) -> dict[str, float]:
    """Ranks the replies of held-out questions: mean reciprocal rank, and share of replies among the first ten."""
    pairs = examples.held_out_pairs[:2000]
    queries, turns = pairs[:, 0], pairs[:, 1]
    with torch.no_grad():
        scores = score(queries, turns)
    is_same_reply = (turns[None] == turns[:, None]) & ~torch.eye(len(turns), dtype=torch.bool, device=examples.device)
    scores = scores.masked_fill(is_same_reply, -1e4)
    ranks = (scores > scores.diagonal()[:, None]).sum(1) + 1
    return {
        "meanReciprocalRank": round(float((1 / ranks).mean()), 4),
        "recallAt10": round(float((ranks <= 10).float().mean()), 4),
    }


def write_arrays(table: Table, folder: Path) -> None:
    """Writes the rounded values, and each row's weight times the size of its rounding step."""
    vectors = table.vectors.data[: table.padding]
    weights = F.softplus(table.raw_weights.data[: table.padding] + WEIGHT_OFFSET) * step_sizes(vectors)
    folder.mkdir(parents=True, exist_ok=True)
    round_to_levels(vectors).to(torch.int8).cpu().numpy().tofile(folder / "values.i8")
    weights[:, 0].cpu().numpy().astype("<f4").tofile(folder / "weights.f32")
    rows, dimensions = vectors.shape
    (folder / "trained.json").write_text(json.dumps({"rows": rows, "dimensions": dimensions}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=Path, required=True, help="output folder of examples.ts")
    parser.add_argument("--teacher", type=Path, required=True, help="output file of teacher.py")
    parser.add_argument("--out", type=Path, required=True, help="folder for trained.json, values.i8 and weights.f32")
    parser.add_argument("--dimensions", type=int, default=64, help="values per row, an even number (default: 64)")
    parser.add_argument("--seconds", type=float, default=200, help="duration of the training (default: 200)")
    parser.add_argument("--batch", type=int, default=1536, help="texts per step (default: 1536)")
    parser.add_argument("--pairs", type=int, default=1024, help="pairs per step (default: 1024)")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu is for trials (default: cuda)")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no CUDA GPU. Use --device cpu for a trial with few examples.")
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    examples = Examples(options.examples, options.teacher, options.device)
    table = Table(examples.rows, options.dimensions).to(examples.device)
    table.vectors.data[: examples.rows] = initial_vectors(examples, options.dimensions)
    table.raw_weights.data[: examples.rows, 0] = initial_weights(examples)
    teacher_score = check(examples, lambda queries, turns: examples.teacher_of(queries) @ examples.teacher_of(turns).T)
    steps = train(table, examples, options)
    table_score = check(
        examples,
        lambda queries, turns: encode(table, examples, queries, QUERY_ROWS, True)
        @ encode(table, examples, turns, TURN_ROWS, True).T,
    )
    write_arrays(table, options.out)
    print(json.dumps({"steps": steps, "teacher": teacher_score, "table": table_score}))


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} does not exist. Run examples.ts and teacher.py first.")
