"""The page on scale: its numbers are those of the model, which follows from what was measured."""

import json
import math
import re

import numpy as np
import pytest
from command import COMMANDS
from matplotlib.figure import Figure
from page_scripts import DOCS, load_script

if not DOCS.is_dir():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)
pytest.importorskip("distributed", reason="dask comes with the extra cluster")

page = load_script("scale")
MERGED_AT_ONCE, SAMPLED, MOST_SENT = page.MERGED_AT_ONCE, page.SAMPLED, page.MOST_SENT
LARGEST_PICTURE = 200_000
MERGING = 1 + 1 / (MERGED_AT_ONCE - 1)  # tasks a part, for its answer and the tree above it
EVERYWHERE = page.Draw(1 / 100, -math.inf, math.inf)
TEXT = page.PAGE.read_text(encoding="utf-8")
NUMBERS = json.loads((page.FOLDER / "model.json").read_text(encoding="utf-8"))
SEARCHES = NUMBERS["messages"]["searches"]


def drawn_parts(n, n_parts):
    return [page.DrawnPart(n // n_parts, i) for i in range(n_parts)]


class TestThePage:
    def test_shows_the_numbers_of_the_model(self):
        assert page.filled(TEXT, page.blocks(NUMBERS)) == TEXT

    def test_numbers_are_written_as_they_are_kept(self):
        assert page.written(NUMBERS) == (page.FOLDER / "model.json").read_text(encoding="utf-8")

    def test_the_model_follows_from_what_was_measured(self):
        assert page.with_model(NUMBERS) == NUMBERS

    def test_has_the_pictures_and_no_others(self):
        drawn = [name for name, section in page.SECTIONS.items() if section.figure is not None]
        assert sorted(re.findall(r"\(scale/(\w+)\.png\)", TEXT)) == sorted(drawn)
        assert {path.stem for path in page.FOLDER.glob("*.png")} == set(drawn)

    def test_pictures_are_light(self):
        sizes = {path.name: path.stat().st_size for path in page.FOLDER.glob("*.png")}
        assert {name: size for name, size in sizes.items() if size >= LARGEST_PICTURE} == {}

    def test_names_the_constants_of_the_library(self):
        text, search = " ".join(TEXT.split()), page.bracketing
        assert f"A random sample of {SAMPLED:,} steps" in text
        assert f"`s` = {SAMPLED:,} sampled" in text
        assert f"more than {MOST_SENT:,} steps" in text
        assert f"at most {MOST_SENT:,}." in text
        assert f"{search.SAMPLED_OF_STRATUM:,} steps of the sample" in text
        assert f"min(4 sqrt(q n), {page.WIDEST_MARGIN:,})" in text
        assert (search._SPREAD, search._WIDEST, search._DEVIATIONS) == (4, page.WIDEST_MARGIN, 3)
        assert f"bytes = {page.BYTES_OF_PART} parts + {page.BYTES_SAMPLED} s" in text
        assert f"+ {page.BYTES_INSIDE} inside" in text

        assert f"merged on the workers, {page.MERGED_AT_ONCE} at a time" in text

    def test_its_commands_have_the_options_they_use(self):
        lines = re.findall(r"^    ordinalrisk (\w+) (.*)$", TEXT, re.MULTILINE)
        assert {name for name, _ in lines} == {"calibrate", "predict", "evaluate", "report"}
        for name, rest in lines:
            known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
            assert set(re.findall(r"(?<= )--?[a-z-]+", f" {rest}")) <= known


class TestTheFormula:
    @pytest.mark.parametrize(
        "one", [one for one in SEARCHES if one["kind"] == "continuous"], ids=lambda one: f"{one['n']:.0e}"
    )
    def test_meets_what_was_simulated(self, one):
        found = page.messages(one["n"], one["alpha"], one["parts"])
        assert abs(found["questions"] - one["questions"]) <= 1
        assert 0.4 < sum(one["to_driver"]) / found["bytes"] < 2.5

    def test_is_the_one_on_the_page(self):
        n, q, parts = 10**7, 0.05, 100
        inside = 6 * n * math.sqrt(q / SAMPLED) + 2 * min(4 * math.sqrt(q * n), 2**16)
        found = page.messages(n, q, parts)
        assert found["inside"] == pytest.approx(inside, rel=1e-3)
        assert found["bytes"] == pytest.approx(67 * parts + 20 * SAMPLED + 10 * inside, rel=2e-3)
        assert found["asked"] == {"sample": 1, "edges": 0, "bracket": 1}

    def test_few_steps_are_sent_whole(self):
        found = page.messages(page.KEPT_WHOLE, 0.05, 4)
        assert found["inside"] == page.KEPT_WHOLE
        assert found["questions"] == 2

    def test_strata_have_a_bracket_each(self):
        one, many = page.messages(10**8, 0.05, 100), page.messages(10**10, 0.05, 100, strata=100)
        assert many["bytes"] > 20 * one["bytes"]

    def test_parts_send_a_step_each_at_least(self):
        few, many = page.messages(10**12, 0.05, 1), page.messages(10**12, 0.05, 10**6)
        per_part = page.BYTES_OF_PART + page.BYTES_SAMPLED
        assert many["bytes"] > 10**6 * per_part > 10 * few["bytes"]


class TestTheModel:
    RATES = {  # noqa: RUF012
        "ns": {"read": 60, "steps": 40, "sample": 1, "edges": 70, "bracket": 5}
        | {"predict": 8, "tally": 5, "write": 20},
        "steps_a_row": 0.5,
        "bytes_a_step": 8,
        "file_bytes_a_row": 50,
        "task": 1_000,
        "task_bytes": 10_000,
    }

    def test_adds_up_what_a_row_costs(self):
        found = page.Model(self.RATES, rows_of_file=10**6).predicted(10**7, 2, alpha=0.05)
        jobs = found["jobs"]
        assert jobs["predict"]["work"] == pytest.approx(10**7 * 88e-9 / 2)
        assert jobs["evaluate"]["work"] == pytest.approx(10**7 * 73e-9 / 2)
        assert found["questions"] == 2
        assert jobs["calibrate"]["work"] == pytest.approx(10**7 * (100 + 0.5 * (1 + 5)) * 1e-9 / 2)
        assert jobs["predict"]["scheduling"] == pytest.approx(10 * (1 + MERGING) * 1e-3)
        assert jobs["evaluate"]["scheduling"] == pytest.approx(10 * MERGING * 1e-3)
        assert jobs["calibrate"]["scheduling"] == pytest.approx(10 * (1 + 2 * MERGING) * 1e-3)
        assert found["held"] == pytest.approx(10**7 * 0.5 * 8 / 2)
        assert found["scheduler"] == pytest.approx(10 * (1 + MERGING) * 10_000)
        assert found["read_rate"] == pytest.approx(50 / 44e-9)

    def test_the_longer_of_work_and_scheduling_counts(self):
        model = page.Model(self.RATES)
        few, many = (model.predicted(10**12, workers)["jobs"]["predict"] for workers in (10, 10_000))
        assert few["seconds"] == few["work"] > few["scheduling"]
        assert many["seconds"] == many["scheduling"] > many["work"]
        assert page.duration(many).endswith("\\*")
        assert not page.duration(few).endswith("*")

    def test_no_more_workers_than_files_have_work(self):
        model = page.Model(self.RATES, rows_of_file=10**6)
        assert model.predicted(10**7, 10)["jobs"] == model.predicted(10**7, 1_000)["jobs"]


class Numbers(list):
    """Numbers that are merged like answers."""

    def merge(self, other):
        return Numbers([*self, *other])


class TestTheSimulation:
    def test_drawn_steps_send_as_much_as_real_ones(self):
        n, parts = 10**6, 10
        real = page.search([page.MadePart(n // parts, i, None) for i in range(parts)], 0.05)
        drawn = page.search(drawn_parts(n, parts), 0.05)
        assert drawn["questions"] == real["questions"]
        assert sum(drawn["to_driver"]) == pytest.approx(sum(real["to_driver"]), rel=0.1)
        assert drawn["level"] == pytest.approx(real["level"], abs=5 * math.sqrt(0.05 / n))

    def test_tied_steps_too(self):
        n, parts = 10**6, 10
        real = page.search([page.MadePart(n // parts, i, 1_000) for i in range(parts)], 0.05)
        drawn = page.search([page.TiedPart(n // parts, i, 1_000) for i in range(parts)], 0.05)
        assert drawn["questions"] == real["questions"]
        assert sum(drawn["to_driver"]) == pytest.approx(sum(real["to_driver"]), rel=0.1)
        assert drawn["level"] == pytest.approx(real["level"], abs=0.0011)

    def test_the_level_is_where_it_must_be(self):
        found = page.search(drawn_parts(10**12, 10), 0.3)
        assert found["level"] == pytest.approx(0.3, abs=5e-6)
        assert len(found["to_driver"]) == found["questions"] >= 4

    def test_what_was_said_stays_so(self):
        part = page.DrawnPart(100_000, 3)
        part.sample({(page.STRATUM, 0): EVERYWHERE})
        edges = np.array([-math.inf, 0.25, 0.5, 0.75])
        before = part.answers({page.STRATUM: page.Question(edges, ())})[page.STRATUM]
        finer = np.sort(np.append(edges, [0.3, 0.4]))
        after = part.answers({page.STRATUM: page.Question(finer, ((0.25, 0.5),))})[page.STRATUM]
        kept = np.searchsorted(finer, edges)
        assert [after.steps_below[i] for i in kept] == list(before.steps_below)
        assert len(after.inside.levels) == before.steps_below[2] - before.steps_below[1]
        below = after.inside.levels < 0.3
        assert after.steps_below[list(finer).index(0.3)] - before.steps_below[1] == below.sum()
        everything = part.answers({page.STRATUM: page.Question(edges[:1], ((-math.inf, math.inf),))})
        assert len(everything[page.STRATUM].inside.levels) == 100_000

    def test_a_sample_has_the_share_that_was_asked_for(self):
        part = page.DrawnPart(100_000, 4)
        for low, high in ((-math.inf, math.inf), (0.2, 0.6), (0.2, 0.6)):
            found = part.sample({(page.STRATUM, 0): page.Draw(1 / 100, low, high)})[page.STRATUM, 0]
            width = min(high, 1) - max(low, 0)
            assert len(found.levels) == pytest.approx(1_000 * width, abs=20)
            assert (found.levels >= low).all()
            assert (found.levels <= high).all()
            assert found.weights.sum() == pytest.approx(100_000 * width, rel=0.05)

    def test_messages_are_weighed_on_every_level_of_the_tree(self):
        n = MERGED_AT_ONCE
        weighed = page.WeighedParts(list(range(n + 1)))
        assert weighed.ask(lambda part: Numbers([part])) == [*range(n + 1)]
        ones = sum(page.weight(Numbers([part])) for part in range(n + 1))
        halves = page.weight(Numbers(range(n))) + page.weight(Numbers([n]))
        assert weighed.moved == ones + halves
        assert weighed.largest == page.weight(Numbers(range(n)))
        assert weighed.to_driver == [page.weight(Numbers(range(n + 1)))]

    def test_measures_writes_and_draws(self):
        messages = page.measure_messages(
            powers=(5, 6), made_powers=(5,), alphas=(0.05,), part_counts=(2, 4, 5)
        )
        again = page.measure_messages(powers=(5, 6), made_powers=(5,), alphas=(0.05,), part_counts=(2, 4, 5))
        assert messages == again
        assert {one["parts"] for one in messages["searches"]} == {2, 4, 5}
        numbers = page.with_model({"rates": NUMBERS["rates"], "messages": messages})
        for section in page.SECTIONS.values():
            if section.text is not None:
                assert not re.search(r"\bnan\b", section.text(numbers))
            if section.figure is not None:
                assert isinstance(section.figure(numbers), Figure)


def test_rates_are_of_all_that_is_on_the_page(tmp_path):
    found = page._rates(tmp_path, 3_000)
    assert set(found["ns"]) == set(page.RATES) == set(NUMBERS["rates"]["ns"])
    assert all(value >= 0 for value in found["ns"].values())
    assert found["bytes_a_step"] >= 8
    assert 0 < found["steps_a_row"] < 1


def test_an_unknown_section_is_refused():
    with pytest.raises(SystemExit, match="no section 'rate'; there are search, rates"):
        page.main(["rate"])


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="one pair of marks <!-- rates -->"):
        page.filled("# A page", {"rates": "| |"})


class TestWhatThePageSays:
    """In words, and here of the numbers."""

    def test_hardly_more_is_sent_of_a_million_times_as_many_rows(self):
        most = max(sum(one["to_driver"]) for one in SEARCHES)
        few = [sum(one["to_driver"]) for one in SEARCHES if one["n"] == 10**6]
        assert most < 10 * max(few)
        assert max(one["n"] for one in SEARCHES) == 10**12

    def test_less_than_a_hundredth_of_the_scores_from_ten_million_on(self):
        large = [one for one in SEARCHES if one["n"] >= 10**7]
        assert max(sum(one["to_driver"]) / (4 * page.K * one["n"]) for one in large) < 0.01

    def test_questions_are_few(self):
        assert max(one["questions"] for one in SEARCHES) <= 7

    def test_reading_takes_most_of_it(self):
        ns = NUMBERS["rates"]["ns"]
        assert ns["read"] > max(ns["steps"], ns["predict"] + ns["write"], ns["predict"] + ns["tally"])

    def test_real_steps_were_made_up_to_a_billion(self):
        assert max(one["n"] for one in SEARCHES if one["made"]) == 10**9
