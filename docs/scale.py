"""Costs of many rows: all numbers and pictures of scale.md.

Rates of one core are measured; messages are simulated with the library's own search, on parts that draw their
steps when they are asked; times for more rows and more workers are computed from both. Plain numbers go to
scale/model.json, Markdown made of them goes between the marks of scale.md.

    python -m docs.scale [SECTION ...]        needs pip install -e ".[bench]", and some minutes

"""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from docs.page_blocks import filled, written
from ordinalrisk.curves import bracketing
from ordinalrisk.curves.bracketing import (
    KEPT_WHOLE,
    MOST_SENT,
    SAMPLED,
    SAMPLED_OF_STRATUM,
    first_question,
    windows_around,
)
from ordinalrisk.curves.part_steps import (
    Answer,
    Draw,
    FirstLook,
    Key,
    LevelSums,
    PartSteps,
    Question,
    Sample,
    Sizes,
)
from ordinalrisk.curves.steps import Steps
from ordinalrisk.display.palette import BLUE, FAINT, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.execution.dask.executor import MERGED_AT_ONCE
from ordinalrisk.files.atomic import replacing
from ordinalrisk.inputs.batch import merge_all
from reproduction.figures import WIDTH, head, name_panel, panels, save

PAGE = Path(__file__).with_suffix(".md")
FOLDER = Path(__file__).with_suffix("")
K = 10
ALPHA = 0.05
STRATUM: Key = (None, None)

Numbers = dict[str, Any]
Track = Callable[[Iterable[Any], str], Iterable[Any]]


def in_silence(steps: Iterable[Any], description: str) -> Iterable[Any]:
    """No progress bar."""
    return steps


# --- Rates of one core ---

ROWS_OF_FILE = 500_000
RATES = {
    "read": "read Parquet, rows side by side",
    "steps": "steps of the losses, and the fingerprint",
    "sample": "a sample of the steps",
    "edges": "count below 500 levels",
    "bracket": "count below one level, sum up a bracket",
    "predict": "intervals",
    "tally": "losses by true class",
    "write": "write Parquet: lower, upper, size",
}
ASKED = ("sample", "edges", "bracket")
"""The kinds of questions about steps."""


def measure_rates(*, rows: int = ROWS_OF_FILE, n_tasks: int = 4_000, track: Track = in_silence) -> Numbers:
    """Core-nanoseconds a row, in a process with one thread; and the driver's core-microseconds a task."""
    one_thread = os.environ | {"ORDINALRISK_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--rates", str(rows), str(n_tasks)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=one_thread)
    return json.loads(found.stdout)


def rates_of_this_process(rows: int, n_tasks: int) -> Numbers:
    """What :func:`measure_rates` has a fresh process do."""
    with tempfile.TemporaryDirectory() as folder:
        load = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}  # before this adds to it
        return load | _rates(Path(folder), rows) | _costs_of_task(n_tasks)


def _rates(folder: Path, rows: int) -> Numbers:
    import pyarrow as pa
    from pyarrow import parquet

    from ordinalrisk import RiskController
    from ordinalrisk.calibration.loss_steps import LossSteps
    from ordinalrisk.evaluation.counts import Tally
    from ordinalrisk.files.scored_rows import FileRows
    from ordinalrisk.files.writers import writing
    from ordinalrisk.inputs.batch import Batch
    from ordinalrisk.inputs.column_roles import ScoreColumns
    from ordinalrisk.prediction.predictor import Predictor

    proba, y = ordinal_scores(rows, K)
    names = [f"p{k}" for k in range(K)]
    table = pa.table(
        [*(np.ascontiguousarray(proba[:, k]) for k in range(K)), y.astype(np.int8)], [*names, "y"]
    )
    path, target = folder / "scores.parquet", folder / "sets.parquet"
    parquet.write_table(table, path)
    columns, classes = ScoreColumns(tuple(names), "y"), list(range(K))
    controller = RiskController(alpha=ALPHA, classes=classes).calibrate(proba, y)

    def batches() -> list[Batch]:
        return [*FileRows(str(path), columns, classes).batches()]

    held = batches()

    def steps() -> PartSteps:
        found = LossSteps(controller.spec, controller.classes_)
        for batch in held:
            found.add(batch)
        return found.as_part()

    def sets() -> list[Any]:
        predictor = Predictor.of(controller.spec, controller.calibration_)
        return [predictor.sets(batch)[0] for batch in held]

    def tally() -> list[Tally]:
        return [Tally.of(batch.labels, of_batch) for batch, of_batch in zip(held, found_sets, strict=True)]

    def write() -> None:
        with writing(target, schema, None, added) as writer:
            for batch in record_batches:
                writer.write(batch)

    part = steps()
    at = part.strata[STRATUM].at
    low, high = np.quantile(at, [0.2, 0.22])
    edges = {STRATUM: Question(np.unique(np.quantile(at, np.linspace(0, 1, 500))), ())}
    bracket = {STRATUM: Question(np.array([-math.inf, low]), ((low, high),))}
    draws = {(STRATUM, 0): Draw(1 / 100, -math.inf, math.inf)}
    found_sets, added = sets(), ["lower", "upper", "size"]
    schema = pa.schema([pa.field(name, pa.int8(), nullable=False) for name in added])
    record_batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(column.astype(np.int8)) for column in (each.lower_index, each.upper_index, each.size)],
            schema=schema,
        )
        for each in found_sets
    ]
    jobs: dict[str, tuple[Callable[[], Any], int]] = {
        "read": (batches, rows),
        "steps": (steps, rows),
        "sample": (lambda: part.sample(draws), len(at)),
        "edges": (lambda: part.answers(edges), len(at)),
        "bracket": (lambda: part.answers(bracket), len(at)),
        "predict": (sets, rows),
        "tally": (tally, rows),
        "write": (write, rows),
    }
    return {
        "rows": rows,
        "ns": {name: best_core_seconds(job) / number * 1e9 for name, (job, number) in jobs.items()},
        "steps_a_row": len(at) / rows,
        "bytes_a_step": len(pickle.dumps(part, protocol=5)) / len(at),
        "file_bytes_a_row": path.stat().st_size / rows,
        "sets_bytes_a_row": target.stat().st_size / rows,
    }


def ordinal_scores(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a good ordinal model: a peak of width 1 around a latent position, with noise."""
    rng = np.random.default_rng(0)
    latent = rng.uniform(-0.5, n_classes - 0.5, (n, 1))
    logits = 0.3 * rng.standard_normal((n, n_classes)) - (np.arange(n_classes) - latent) ** 2 / 2
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba = (proba / proba.sum(axis=1, keepdims=True)).astype(np.float32)
    return proba, (proba.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)


def best_core_seconds(job: Callable[[], Any], repeats: int = 7) -> float:
    """The time that the process was running; that of other processes does not count."""
    found = []
    job()
    for _ in range(repeats):
        start = time.process_time()
        kept = job()
        found.append(time.process_time() - start)
        del kept
    return min(found)


def _costs_of_task(n_tasks: int) -> Numbers:
    """What a task that does nothing costs the process that has client and scheduler: time, and memory."""
    import dask
    from dask.delayed import delayed
    from distributed import wait

    from ordinalrisk.execution.dask.connecting import connected

    def run() -> Any:
        held = dask.persist(*(delayed(_nothing, pure=False)(i) for i in range(n_tasks)))
        wait(held)
        return held

    with connected("local:2"):
        before = _resident_bytes()
        held = run()
        grown = _resident_bytes() - before
        del held
        return {"task": best_core_seconds(run, repeats=3) / n_tasks * 1e6, "task_bytes": grown / n_tasks}


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s*(\d+)", status)[1])


def _nothing(i: int) -> int:
    return i


# --- Messages: the library's own search on parts that have their steps only when asked ---


class _Part:
    """A part of some steps, identified by its number."""

    _n_steps: int
    _index: int

    @property
    def checksum(self) -> int:
        """Its fingerprint as a number."""
        return int(digest_of(self._index), 16)

    def first_look(self, most: float, most_of_stratum: float) -> FirstLook:
        """How much there is, and about ``most`` steps."""
        draw = Draw(min(1.0, max(most, most_of_stratum) / self._n_steps), -math.inf, math.inf)
        sample = self.sample({(STRATUM, 0): draw})[STRATUM, 0]
        return FirstLook(sizes_of_part(self._n_steps, self._index), {STRATUM: sample})

    def sample(self, draws: Any) -> Any:
        """Some of the steps."""
        raise NotImplementedError


class MadePart(_Part):
    """A part of real steps, which are drawn again for each question."""

    def __init__(self, n_steps: int, index: int, levels: int | None) -> None:
        self._n_steps, self._index, self._levels = n_steps, index, levels

    def _made(self) -> PartSteps:
        rng = np.random.default_rng(self._index)
        at = rng.random(self._n_steps)
        if self._levels is not None:
            at = np.floor(at * self._levels) / self._levels
        return PartSteps(
            {STRATUM: Steps(at, 1, 1)},
            {STRATUM: self._n_steps},
            _CLASS_ROWS,
            {self._index: digest_of(self._index)},
        )

    def first_look(self, most: float, most_of_stratum: float) -> FirstLook:
        """How much there is, and a few steps."""
        return self._made().first_look(most, most_of_stratum)

    def sample(self, draws: Any) -> Any:
        """Some of the steps."""
        return self._made().sample(draws)

    def answers(self, questions: Any) -> Any:
        """What is asked about them."""
        return self._made().answers(questions)


class DrawnPart(_Part):
    """A part of steps at random levels from 0 to 1, of which only those are drawn that are asked for.

    Steps that were drawn are known. How many others lie between the levels that were asked about is drawn as
    the counts of independent steps are: splitting a cell is binomial. So the answers have the distribution
    that those of so many steps have, and never contradict each other.
    """

    def __init__(self, n_steps: int, index: int) -> None:
        self._n_steps, self._index = n_steps, index
        self._rng = np.random.default_rng(index)
        self._cuts = np.array([0.0, 1.0])
        self._hidden = np.array([n_steps])
        self._known = np.empty(0)

    def sample(self, draws: Mapping[tuple[Key, int], Draw]) -> dict[tuple[Key, int], Sample]:
        """Some of the steps."""
        found = {}
        for key, draw in draws.items():
            low, high = max(draw.low, 0.0), min(draw.high, 1.0)
            cells = self._cells(low, high)
            known = self._known[(self._known >= low) & (self._known <= high)]
            hidden = int(self._hidden[cells].sum())
            number = min(int((hidden + len(known)) * draw.share + self._rng.random()), hidden + len(known))
            of_known = int(self._rng.binomial(number, len(known) / max(hidden + len(known), 1)))
            of_known = min(max(of_known, number - hidden), len(known))
            share = self._hidden[cells] / max(hidden, 1)
            drawn = self._rng.multinomial(number - of_known, share) if hidden else np.zeros(len(share), int)
            new = self._reveal(cells, np.minimum(drawn, self._hidden[cells]))
            levels = np.append(self._rng.choice(known, of_known, replace=False), new)
            found[key] = Sample(levels, np.ones(len(levels), np.int64), _weights(len(levels), draw))
        return found

    def answers(self, questions: Mapping[Key, Question]) -> dict[Key, Answer]:
        """What is asked about them."""
        (key, question), *_ = questions.items()
        self._cut(np.clip(question.edges, 0, 1))
        inside = []
        for low, high in question.brackets:
            low, high = max(low, 0.0), min(high, 1.0)
            cells = self._cells(low, high)
            self._reveal(cells, self._hidden[cells].copy())
            inside.append(self._known[(self._known >= low) & (self._known <= high)])
        levels = np.unique(np.concatenate([np.empty(0), *inside]))
        below = np.append(0, np.cumsum(self._hidden))[
            np.searchsorted(self._cuts, np.clip(question.edges, 0, 1))
        ]
        below = (below + np.searchsorted(self._known, question.edges)).tolist()
        ones = np.ones(len(levels), np.int64)
        return {key: Answer(tuple(below), tuple(below), LevelSums.added(levels, ones, ones))}

    def _cells(self, low: float, high: float) -> slice:
        """The cells from one level to another, which become borders if they are not yet."""
        self._cut(np.array([low, high]))
        first, last = np.searchsorted(self._cuts, [low, high])
        return slice(int(first), int(last))

    def _cut(self, levels: np.ndarray) -> None:
        new = np.setdiff1d(levels, self._cuts)
        if not len(new):
            return
        cuts = np.union1d(self._cuts, new)
        first = np.searchsorted(cuts, self._cuts)
        hidden = np.zeros(len(cuts) - 1, np.int64)
        for cell, count in enumerate(self._hidden.tolist()):
            parts = slice(first[cell], first[cell + 1])
            widths = np.diff(cuts[first[cell] : first[cell + 1] + 1])
            hidden[parts] = count if len(widths) == 1 else self._rng.multinomial(count, widths / widths.sum())
        self._cuts, self._hidden = cuts, hidden

    def _reveal(self, cells: slice, number: np.ndarray) -> np.ndarray:
        """Draw so many of the hidden steps of each cell."""
        low, high = self._cuts[:-1][cells], self._cuts[1:][cells]
        new = np.repeat(low, number) + self._rng.random(int(number.sum())) * np.repeat(high - low, number)
        self._hidden[cells] -= number
        self._known = np.sort(np.append(self._known, new))
        return new


class TiedPart(_Part):
    """A part of steps at a few levels, of which it has the counts."""

    def __init__(self, n_steps: int, index: int, levels: int) -> None:
        self._n_steps, self._index = n_steps, index
        self._rng = np.random.default_rng(index)
        self._levels = np.arange(levels) / levels
        self._counts = self._rng.multinomial(n_steps, np.full(levels, 1 / levels))

    def sample(self, draws: Mapping[tuple[Key, int], Draw]) -> dict[tuple[Key, int], Sample]:
        """Some of the steps, as good as drawn without replacement where they are few of many."""
        found = {}
        for key, draw in draws.items():
            inside = np.where((self._levels >= draw.low) & (self._levels <= draw.high), self._counts, 0)
            number = int(inside.sum() * draw.share + self._rng.random())
            drawn = np.minimum(self._rng.multinomial(number, inside / inside.sum()), inside)
            levels = np.repeat(self._levels, drawn)
            found[key] = Sample(levels, np.ones(len(levels), np.int64), _weights(len(levels), draw))
        return found

    def answers(self, questions: Mapping[Key, Question]) -> dict[Key, Answer]:
        """What is asked about them."""
        (key, question), *_ = questions.items()
        chosen = np.zeros(len(self._levels), bool)
        for low, high in question.brackets:
            chosen |= (self._levels >= low) & (self._levels <= high)
        chosen &= self._counts > 0
        totals = np.append(0, np.cumsum(self._counts))
        below = totals[np.searchsorted(self._levels, question.edges)].tolist()
        counts = self._counts[chosen]
        return {
            key: Answer(tuple(below), tuple(below), LevelSums.added(self._levels[chosen], counts, counts))
        }


def _weights(number: int, draw: Draw) -> np.ndarray:
    return np.full(number, 1 / draw.share, np.float32)


_CLASS_ROWS = np.zeros(K, np.int64)


def digest_of(index: int) -> str:
    """As long as the fingerprint of a part's rows."""
    return f"{index:064x}"


def sizes_of_part(n_steps: int, index: int) -> Sizes:
    """The sizes of a part with one stratum, in which every row has a step."""
    number = {STRATUM: n_steps}
    met = {STRATUM: (index, 0)}
    return Sizes(dict(number), dict(number), dict(number), _CLASS_ROWS, {index: digest_of(index)}, met)


class WeighedParts:
    """Parts whose answers are merged in a tree, as on a cluster, and weighed on the way.

    Attributes
    ----------
    to_driver : list of int
        The pickled bytes of what comes out of the tree, for each question.
    largest, moved : int
        The largest message from one worker to another if no two tasks share one, and all of them together.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        self.to_driver: list[int] = []
        self.largest = self.moved = 0

    def first_look(self) -> FirstLook:
        """What all parts say first."""
        return self.ask(first_question(len(self._parts)))

    def ask(self, question: Any) -> Any:
        """What all parts answer."""
        level = [question(part) for part in self._parts]
        while len(level) > 1:
            sizes = [weight(answer) for answer in level]
            self.largest, self.moved = max(self.largest, *sizes), self.moved + sum(sizes)
            level = [
                merge_all(level[start : start + MERGED_AT_ONCE])
                for start in range(0, len(level), MERGED_AT_ONCE)
            ]
        self.to_driver.append(weight(level[0]))
        return level[0]


def weight(value: Any) -> int:
    """Its bytes when it is sent."""
    return len(pickle.dumps(value, protocol=5))


def search(parts: Sequence[Any], alpha: float) -> Numbers:
    """One threshold of these parts, and what was sent for it."""
    weighed = WeighedParts(parts)
    first = weighed.first_look()
    sizes = first.sizes
    budget = int(alpha * sizes.units[STRATUM])
    found = windows_around(weighed, first, {STRATUM: {budget}}, {STRATUM: 1})[STRATUM]
    return {
        "n": sizes.steps[STRATUM],
        "parts": len(parts),
        "alpha": alpha,
        "level": found.first_level_above(budget),
        "questions": len(weighed.to_driver),
        "to_driver": weighed.to_driver,
        "largest": weighed.largest,
        "moved": weighed.moved,
    }


LEVELS = {"continuous": None, "tied": 1_000}


def measure_messages(
    *,
    powers: Sequence[int] = range(6, 13),
    made_powers: Sequence[int] = (6, 7, 8, 9),
    alphas: Sequence[float] = (0.001, 0.01, 0.05, 0.1, 0.5),
    part_counts: Sequence[int] = (10, 100, 1_000),
    track: Track = in_silence,
) -> Numbers:
    """Bytes and questions for each number of steps, alpha and number of parts; and the same of real steps."""
    found = []
    usual = part_counts[len(part_counts) // 2]
    cases = [
        (kind, 10**power, alpha, parts)
        for kind, power, alpha, parts in product(LEVELS, powers, alphas, part_counts)
        if parts == usual or alpha == ALPHA
    ]
    for kind, n, alpha, n_parts in track(cases, "messages"):
        levels = LEVELS[kind]
        each = n // n_parts
        parts = [DrawnPart(each, i) if levels is None else TiedPart(each, i, levels) for i in range(n_parts)]
        found.append({"kind": kind, "made": False} | search(parts, alpha))
    made = [
        (kind, 10**power, alpha)
        for kind, power, alpha in product(LEVELS, made_powers, alphas)
        if power <= 7 or (alpha == ALPHA and (power <= 8 or kind == "continuous"))
    ]
    for kind, n, alpha in track(made, "messages of real steps"):
        n_parts = usual if n < 10**9 else part_counts[-1]
        parts = [MadePart(n // n_parts, i, LEVELS[kind]) for i in range(n_parts)]
        found.append({"kind": kind, "made": True} | search(parts, alpha))
    return {"alphas": list(alphas), "part_counts": list(part_counts), "searches": found}


# --- The model ---

BYTES_SAMPLED = 20  # level, units, and how many steps it stands for
BYTES_INSIDE = 10  # level, units and number of steps
BYTES_OF_PART = 67  # its fingerprint
BYTES_OF_EDGES = 6_500  # two whole numbers for each
WIDEST_MARGIN = 2**16  # beyond the budget, in steps


def messages(n_steps: float, alpha: float, parts: int, strata: int = 1) -> Numbers:
    """Questions and bytes that come to the driver for one alpha, of strata that are alike, levels untied.

    It follows the search. A sample of k steps puts the threshold within 3 sqrt(k q) of its steps, q the share
    below it. If too many steps lie there, counts below many levels cut them down to a few of the sample's
    steps, of which another sample is drawn if they are still too many.
    """
    sizes = parts * BYTES_OF_PART
    n = n_steps / strata
    if n <= KEPT_WHOLE:
        drawn = min(n, max(SAMPLED / strata, SAMPLED_OF_STRATUM))
        return _messages(1, 0, n_steps, sizes + strata * drawn * BYTES_SAMPLED + n_steps * BYTES_INSIDE)
    margin = min(4 * math.sqrt(alpha * n), WIDEST_MARGIN) + 1
    drawn = min(n, max(_of_all(SAMPLED, parts) / strata, _of_all(SAMPLED_OF_STRATUM, parts)))
    below, inside = alpha, n
    samples, edges, sent = 1, 0, drawn * BYTES_SAMPLED
    while (width := 2 * (3 * math.sqrt(drawn * below + 1) * inside / drawn + margin)) > MOST_SENT:
        edges += 1
        spacing = max(math.isqrt(int(drawn)) // 32, 1)
        inside = 1.5 * spacing * inside / drawn + 2 * margin
        if inside <= MOST_SENT:
            width = inside
            break
        drawn, below = SAMPLED, 0.5
        samples += 1
        sent += drawn * BYTES_SAMPLED
    width = min(width, inside)
    sent += edges * BYTES_OF_EDGES + width * BYTES_INSIDE
    return _messages(samples, edges, strata * width, sizes + strata * sent)


def _of_all(wanted: int, parts: int) -> int:
    """How many steps all parts send if they share this number out, each at least one."""
    return parts * math.ceil(wanted / parts)


def _messages(samples: int, edges: int, inside: float, sent: float) -> Numbers:
    asked = {"sample": samples, "edges": edges, "bracket": 1}
    return {"asked": asked, "questions": sum(asked.values()), "inside": inside, "bytes": sent}


@dataclass(frozen=True)
class Model:
    """Times and memory from the rates of one core, for files of equal size.

    Parameters
    ----------
    rates : mapping
        As measured.
    rows_of_file : int
        Each file is a task.
    """

    rates: Mapping[str, Any]
    rows_of_file: int = 5_000_000

    def predicted(self, rows: int, workers: int, alpha: float = ALPHA) -> Numbers:
        """For so many rows on so many workers with one core each."""
        ns, steps = self.rates["ns"], self.rates["steps_a_row"]
        files = math.ceil(rows / self.rows_of_file)
        found = messages(rows * steps, alpha, files)
        questions_ns = steps * sum(number * ns[kind] for kind, number in found["asked"].items())
        per_question = files * (1 + 1 / (MERGED_AT_ONCE - 1))
        costs = {
            "calibrate": (
                ns["read"] + ns["steps"] + questions_ns,
                files + found["questions"] * per_question,
            ),
            "predict": (ns["read"] + ns["predict"] + ns["write"], files + per_question),  # which checks
            "evaluate": (ns["read"] + ns["predict"] + ns["tally"], per_question),
        }
        jobs = {}
        for job, (nanoseconds, tasks) in costs.items():
            work = rows * nanoseconds * 1e-9 / min(workers, files)
            scheduling = tasks * self.rates["task"] * 1e-6
            jobs[job] = {"work": work, "scheduling": scheduling, "seconds": max(work, scheduling)}
        return {
            "rows": rows,
            "workers": workers,
            "files": files,
            "questions": found["questions"],
            "to_driver": found["bytes"],
            "scheduler": (files + per_question) * self.rates["task_bytes"],
            "held": rows * steps * self.rates["bytes_a_step"] / min(workers, files),
            "read_rate": rows * self.rates["file_bytes_a_row"] / jobs["predict"]["seconds"],
            "jobs": jobs,
        }


ROWS, WORKERS = (10**9, 10**12), (10, 100, 1_000)


def model_of(numbers: Mapping[str, Any]) -> list[Numbers]:
    """The prediction of the model for every number of rows and workers on the page."""
    model = Model(numbers["rates"])
    return [model.predicted(rows, workers) for rows, workers in product(ROWS, WORKERS)]


# --- Words ---


def rates_text(numbers: Mapping[str, Any]) -> str:
    """The rates, as a table."""
    rates = numbers["rates"]
    rows = []
    for name, meaning in RATES.items():
        ns = rates["ns"][name]
        of = "step" if name in ASKED else "row"
        rows.append((meaning, of, f"{ns:.1f}", f"{1e3 / ns:,.0f}"))
    size_of_row = f"{rates['file_bytes_a_row']:.0f} bytes a row"
    return TextTable("", ("one core", "of a", "nanoseconds", "million a second"), rows).markdown() + (
        f"\n\nA file of {rates['rows']:,} rows, {K} classes, float32, {size_of_row}; coverage with alpha = "
        f"{ALPHA}, where {rates['steps_a_row']:.2f} of the rows have a step, held in "
        f"{rates['bytes_a_step']:.0f} bytes. A task that does nothing costs the process with client and "
        f"scheduler {rates['task']:,.0f} microseconds, so it hands out at most {1e6 / rates['task']:,.0f} a "
        f"second, and {rates['task_bytes'] / 1e3:.1f} kB while it is remembered. Measured on "
        f"{rates['cores']} cores with a load of {rates['load']:.1f}."
    )


def messages_text(numbers: Mapping[str, Any]) -> str:
    """What is sent to the driver: the simulation and the formula."""
    searches = numbers["messages"]["searches"]
    rows = []
    for one in searches:
        if one["kind"] != "continuous" or one["alpha"] != ALPHA or one["parts"] != _usual(numbers):
            continue
        if one["made"]:
            continue
        real = [
            other
            for other in searches
            if other["made"]
            and (other["kind"], other["n"], other["alpha"]) == ("continuous", one["n"], ALPHA)
        ]
        tied = next(
            other
            for other in searches
            if not other["made"]
            and (other["kind"], other["n"], other["alpha"], other["parts"])
            == ("tied", one["n"], ALPHA, one["parts"])
        )
        formula = messages(one["n"], ALPHA, one["parts"])
        rows.append(
            (
                power(one["n"]),
                megabytes(sum(one["to_driver"])),
                megabytes(sum(real[0]["to_driver"])) if real else "",
                megabytes(formula["bytes"]),
                str(one["questions"]),
                str(formula["questions"]),
                megabytes(sum(tied["to_driver"])),
                share(sum(one["to_driver"]) / (4 * K * one["n"])),
            )
        )
    header = (
        "steps",
        "MB to the driver, drawn",
        "of real steps",
        "formula",
        "questions",
        "formula",
        "MB, 1,000 levels",
        "of the scores",
    )
    most = max(sum(one["to_driver"]) for one in searches)
    asked = max(one["questions"] for one in searches)
    between = np.geomspace(min(one["n"] for one in searches), max(one["n"] for one in searches), 1_000)
    highest = max(
        messages(n, alpha, _usual(numbers))["bytes"]
        for n, alpha in product(between.tolist(), numbers["messages"]["alphas"])
    )
    return TextTable("", header, rows).markdown() + (
        f"\n\nalpha = {ALPHA}, {_usual(numbers)} parts (1,000 for 10^9 real steps), every row with a step, "
        f"scores of {4 * K} bytes a row. Over all {len(searches)} searches, with alpha from "
        f"{min(numbers['messages']['alphas'])} to {max(numbers['messages']['alphas'])} and "
        f"{', '.join(f'{count:,}' for count in numbers['messages']['part_counts'])} parts, at most "
        f"{megabytes(most)} MB came to the driver, after at most {asked} questions; between these sizes the "
        f"formula reaches {megabytes(highest)} MB."
    )


def model_text(numbers: Mapping[str, Any]) -> str:
    """The predictions, as a table."""
    rows = []
    for one in numbers["model"]:
        jobs = one["jobs"]
        rows.append(
            (
                power(one["rows"]),
                f"{one['workers']:,}",
                *(duration(jobs[job]) for job in jobs),
                size(one["held"]),
                size(one["to_driver"]),
                size(one["scheduler"]),
                f"{size(one['read_rate'])}/s",
            )
        )
    header = (
        "rows",
        "workers",
        "calibrate",
        "predict",
        "evaluate",
        "held by each",
        "to the driver",
        "scheduler",
        "reading",
    )
    model = Model(numbers["rates"])
    return TextTable("", header, rows).markdown() + (
        f"\n\n\\*: the scheduler is the limit, not the workers. Files of {model.rows_of_file:,} rows; *held "
        "by each* worker are the steps, between the questions of a calibration; *scheduler* is what it "
        "remembers of tasks then; *reading* is what storage must give all workers together as they predict."
    )


def _usual(numbers: Mapping[str, Any]) -> int:
    counts = numbers["messages"]["part_counts"]
    return int(counts[len(counts) // 2])


def power(n: float) -> str:
    """A power of ten."""
    return f"10^{round(math.log10(n))}"


def megabytes(value: float) -> str:
    """In MB."""
    return f"{value / 1e6:.2f}" if value < 1e7 else f"{value / 1e6:.1f}"


def share(value: float) -> str:
    """In percent, with two digits that count."""
    return f"{100 * value:.2g} %" if value >= 1e-4 else f"{100 * value:.0e} %"


def size(value: float) -> str:
    """With its unit."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if value >= unit:
            return f"{value / unit:.{1 if value < 10 * unit else 0}f} {name}"
    return f"{value / 1e3:.0f} kB"


def duration(job: Mapping[str, float]) -> str:
    """With its unit, and marked where the scheduler is the limit."""
    seconds = job["seconds"]
    shown = (
        f"{seconds:.1f} s"
        if seconds < 10
        else f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7_200
        else f"{seconds / 3_600:.0f} h"
    )
    return f"{shown} \\*" if job["scheduling"] > job["work"] else shown


# --- Pictures ---


def search_figure(numbers: Mapping[str, Any] | None = None) -> Figure:
    """The risk curve, the bracket that a sample gives, what is counted and what is sent."""
    n, alpha = 1_000_000, ALPHA
    parts = [MadePart(n // 10, i, None) for i in range(10)]
    # Levels as models have them: many low ones
    at = np.sort(np.concatenate([part._made().strata[STRATUM].at for part in parts])) ** 0.5
    total, budget = np.arange(1, n + 1), int(alpha * n)
    rng = np.random.default_rng(0)
    sampled = np.sort(rng.choice(n, SAMPLED, replace=False))
    each = bracketing._Search(STRATUM, budget, bracketing._margin(budget, 1), n, n)
    drawn = Draw(SAMPLED / n, -math.inf, math.inf)
    asked = each.asks(Sample(at[sampled], np.ones(SAMPLED, np.int64), _weights(SAMPLED, drawn)))
    ((low, high),) = asked.brackets
    first, last = np.searchsorted(at, low), np.searchsorted(at, high, side="right")
    figure, [[whole, near]] = panels(2, width=WIDTH, height=3.4, sharey=False)
    thin = slice(None, None, 500)
    for axes in (whole, near):
        axes.axhline(alpha, color=VERMILLION, linewidth=1.2, linestyle="--")
        axes.axvspan(low, high, color=SKY, alpha=0.35, linewidth=0)
        axes.set(xlabel="threshold")
    whole.plot(at[thin], total[thin] / n, color=INK, linewidth=2)
    whole.plot(
        at[sampled[::80]], np.zeros(len(sampled[::80])) - 0.035, "|", color=BLUE, markersize=5, alpha=0.6
    )
    whole.set(ylabel="risk of the calibration rows", ylim=(-0.07, 1.02), xlim=(0, 1))
    edges = asked.edges[np.isfinite(asked.edges)]
    around = (edges > low - 3 * (high - low)) & (edges < high + 3 * (high - low))
    inside = slice(first, last, 40)
    margin = 1.1 * (high - low)
    wide = slice(*np.searchsorted(at, [low - margin, high + margin]).tolist(), 100)
    near.plot(at[wide], total[wide] / n, color=GREY, linewidth=1.5, zorder=1)
    near.plot(at[inside], total[inside] / n, color=BLUE, linewidth=3, zorder=2)
    near.plot(edges[around], np.searchsorted(at, edges[around]) / n, "o", color=GREEN, markersize=4, zorder=3)
    found = at[budget]
    near.plot([found], [alpha], "D", color=VERMILLION, markersize=8, zorder=4)
    near.set(xlim=(low - margin, high + margin), ylim=tuple(total[[wide.start, wide.stop - 1]] / n))
    name_panel(whole, f"{n:,} steps on the workers; {SAMPLED:,} of them are drawn")
    name_panel(near, f"counted below: {first:,}; sent: {last - first:,}, {(last - first) / n:.1%} of all")
    key = [
        Line2D([], [], color=BLUE, marker="|", linestyle="", label="sample"),
        Patch(color=SKY, alpha=0.35, label="bracket"),
        Line2D([], [], color=GREEN, marker="o", linestyle="", label="counted below"),
        Line2D([], [], color=BLUE, linewidth=3, label="sent"),
        Line2D([], [], color=VERMILLION, linestyle="--", label="budget"),
        Line2D([], [], color=VERMILLION, marker="D", linestyle="", label="threshold, exact"),
    ]
    head(
        figure,
        "A sample says where to look, counts make it exact",
        "Left: the whole curve. Right: around the budget, where every step is known; all others are counts.",
        key,
    )
    return figure


def messages_figure(numbers: Mapping[str, Any]) -> Figure:
    """Bytes to the driver and questions against the number of steps."""
    searches = numbers["messages"]["searches"]
    usual = _usual(numbers)
    colours = [PURPLE, ORANGE, BLUE, GREEN, VERMILLION]
    figure, [[bytes_axes, question_axes]] = panels(2, width=WIDTH, height=3.6, sharey=False)
    sizes = sorted({one["n"] for one in searches})
    fine = np.geomspace(sizes[0], sizes[-1], 200)
    key = []
    for alpha, colour in zip(numbers["messages"]["alphas"], colours, strict=False):
        mine = [one for one in searches if (one["kind"], one["alpha"]) == ("continuous", alpha)]
        drawn = [one for one in mine if not one["made"] and one["parts"] == usual]
        at = [one["n"] for one in drawn]
        bytes_axes.plot(at, [sum(one["to_driver"]) for one in drawn], "o", color=colour, markersize=5)
        bytes_axes.plot(
            fine, [messages(n, alpha, usual)["bytes"] for n in fine], color=colour, linewidth=1, alpha=0.7
        )
        real = [one for one in mine if one["made"]]
        bytes_axes.plot(
            [one["n"] for one in real],
            [sum(one["to_driver"]) for one in real],
            "o",
            markerfacecolor="none",
            markeredgecolor=colour,
            markersize=10,
        )
        question_axes.plot(at, [one["questions"] for one in drawn], "-o", color=colour, markersize=5)
        key.append(Line2D([], [], color=colour, marker="o", label=f"alpha = {alpha:g}"))
    tied = [one for one in searches if (one["kind"], one["alpha"], one["parts"]) == ("tied", ALPHA, usual)]
    tied = [one for one in tied if not one["made"]]
    bytes_axes.plot(
        [one["n"] for one in tied], [sum(one["to_driver"]) for one in tied], "s", color=GREY, markersize=4
    )
    bytes_axes.plot(fine, 0.01 * 4 * K * fine, color=MUTED, linestyle=":", linewidth=1.4)
    bytes_axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="bytes to the driver", ylim=(2e5, 1e8))
    question_axes.set(xscale="log", xlabel="steps", ylim=(0, 8), ylabel="questions")
    for axes in (bytes_axes, question_axes):
        axes.grid(color=FAINT, linewidth=0.6)
    name_panel(bytes_axes, "what comes to the driver")
    name_panel(question_axes, "questions to all workers")
    key += [
        Line2D([], [], color=GREY, marker="s", linestyle="", label=f"1,000 levels, alpha = {ALPHA:g}"),
        Line2D([], [], color=INK, linewidth=1, label="formula"),
        Line2D(
            [],
            [],
            color=INK,
            marker="o",
            markerfacecolor="none",
            markersize=9,
            linestyle="",
            label="real steps",
        ),
        Line2D([], [], color=MUTED, linestyle=":", label="1 % of the scores"),
    ]
    of_usual = {
        one["n"]: sum(one["to_driver"])
        for one in searches
        if (one["kind"], one["alpha"], one["parts"], one["made"]) == ("continuous", ALPHA, usual, False)
    }
    growth = of_usual[sizes[-1]] / of_usual[sizes[0]]
    head(
        figure,
        f"{sizes[-1] // sizes[0]:,} times as many steps send {growth:.0f} times as much",
        f"Simulated with {usual} parts, levels all different unless said; a dot is one search. The "
        f"headline is for alpha = {ALPHA:g}.",
        key,
    )
    return figure


def model_figure(numbers: Mapping[str, Any]) -> Figure:
    """Predicted times against workers."""
    model = Model(numbers["rates"])
    figure, columns = panels(len(ROWS), width=WIDTH, height=3.4)
    workers = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    colours = {"calibrate": BLUE, "predict": ORANGE, "evaluate": GREEN}
    for axes, rows in zip(columns[0], ROWS, strict=True):
        found = [model.predicted(rows, int(each)) for each in workers]
        for job, colour in colours.items():
            axes.plot(workers, [one["jobs"][job]["seconds"] for one in found], color=colour, linewidth=2)
            axes.axhline(found[0]["jobs"][job]["scheduling"], color=colour, linewidth=1, linestyle=":")
        axes.set(xscale="log", yscale="log", xlabel="workers with one core each")
        axes.grid(color=FAINT, linewidth=0.6)
        name_panel(axes, f"{power(rows)} rows in {found[0]['files']:,} files")
    columns[0][0].set_ylabel("seconds")
    key = [Line2D([], [], color=colour, label=job) for job, colour in colours.items()]
    key.append(Line2D([], [], color=MUTED, linestyle=":", label="the scheduler alone"))
    head(figure, "Time falls with workers, until the scheduler is the limit", "Predicted, not measured.", key)
    return figure


# --- The page ---


@dataclass(frozen=True)
class Section:
    """How its numbers are found, how they read, and how they look if there is a picture."""

    measure: Callable[..., Any] | None
    text: Callable[[Mapping[str, Any]], str] | None
    figure: Callable[[Mapping[str, Any]], Figure] | None


SECTIONS = {
    "search": Section(None, None, search_figure),
    "rates": Section(measure_rates, rates_text, None),
    "messages": Section(measure_messages, messages_text, messages_figure),
    "model": Section(None, model_text, model_figure),
}


def with_model(measured: Mapping[str, Any]) -> Numbers:
    """What was measured, and what follows from it."""
    kept = json.loads(written({name: measured[name] for name in ("rates", "messages")}))
    return json.loads(written(kept | {"model": model_of(kept)}))


def blocks(numbers: Mapping[str, Any]) -> dict[str, str]:
    """The text between the marks of the page."""
    return {name: one.text(numbers) for name, one in SECTIONS.items() if one.text is not None}


def main(names: Sequence[str]) -> None:
    """Measure the named sections, or all, then compute, draw and write what follows."""
    from ordinalrisk.cli.terminal import progress

    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"There is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}.")
    file = FOLDER / "model.json"
    numbers: Numbers = json.loads(file.read_text(encoding="utf-8")) if names else {}
    FOLDER.mkdir(exist_ok=True)
    with progress() as bar:
        for name in names or list(SECTIONS):
            measure = SECTIONS[name].measure
            if measure is not None:
                numbers[name] = measure(track=lambda steps, text: bar.track(steps, description=text))
    numbers = with_model(numbers)
    for name, section in SECTIONS.items():
        if section.figure is not None:
            save(section.figure(numbers), FOLDER / f"{name}.png")
    with replacing(file) as temporary:
        temporary.write_text(written(numbers), encoding="utf-8")
    page = filled(PAGE.read_text(encoding="utf-8"), blocks(numbers))
    with replacing(PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rates"]:
        print(json.dumps(rates_of_this_process(*map(int, sys.argv[2:4]))))
    else:
        main(sys.argv[1:])
